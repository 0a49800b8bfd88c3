"""How the samples' rows are computed: DataFrame → DataFrame, pure."""

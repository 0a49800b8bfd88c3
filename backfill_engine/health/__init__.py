"""How the tables are doing: how late data comes, how runs end, how far tables lag. No Dagster."""

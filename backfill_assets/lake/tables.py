from backfill_assets.tables.declarations import Column, Table, build_ddl, required  # noqa: D100, F401

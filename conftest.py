"""What all tests share."""

pytest_plugins = ["backfill_engine_tests.shared_fixtures"]

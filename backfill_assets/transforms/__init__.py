"""Pure functions from DataFrame to DataFrame. The final select of each is its contract."""

"""How the tables are doing, as assets with figures over time, checks of lag, and pages of plots."""

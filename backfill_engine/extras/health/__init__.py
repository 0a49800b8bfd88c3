"""How the tables are doing: assets with figures over time, checks of lag, and pages of plots."""

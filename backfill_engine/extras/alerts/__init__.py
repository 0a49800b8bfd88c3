"""Alerts: who is told of what was held back, when, and in which words."""

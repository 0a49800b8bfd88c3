"""Maintenance: tables stay quick and small, and undo is promised for as long as before."""

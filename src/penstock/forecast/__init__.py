"""Forecasts of a backlog: the rules of lanes, run over it in virtual time."""

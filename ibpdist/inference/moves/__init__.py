"""Moves that leave local optima: functions of the parameters and sums of a step, never of rows."""

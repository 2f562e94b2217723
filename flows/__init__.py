"""Prefect flows: the library on a calendar. Each task is one library call, with no mathematics of its own.

The run directory is the truth: a task asks it first and returns at once when its work is committed.
Prefect keeps the calendar and the record, never a result.
"""

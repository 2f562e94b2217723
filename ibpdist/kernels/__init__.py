"""Compiled loops: arrays in, arrays out. Nothing here knows of files, records or workers."""

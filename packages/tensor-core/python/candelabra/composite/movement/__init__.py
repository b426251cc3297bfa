"""Elements moved, joined, indexed and sorted; views."""

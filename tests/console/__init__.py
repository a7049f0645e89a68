"""A package, so that its modules may have the names that those of other suites have."""

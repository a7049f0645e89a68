"""Whether agents do what they should: cases of a file, each tried several times, by one way or several."""

// The writer thread.

"""A second inference of ranges, to compare the compiler with: see README.md."""

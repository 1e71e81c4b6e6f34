"""An oracle that shares nothing with the compiler: random programs, and what NumPy says of them. See README.md."""

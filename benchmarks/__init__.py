"""Side-by-side measurements; never part of the test suite, which asserts on no time."""

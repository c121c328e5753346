"""Mutation testing: `make mutants` changes the code in small ways and sees whether a test fails.

**Problem.** A line that a test executes is not a line that a test checks. If a mutation (``<`` becomes ``<=``, a call
is left out) makes no test fail, nothing holds that line.

**Method.** The whole suite takes too long to run for every mutation, so it runs once with a recorder that notes which
test calls which function, in its own process and in those that it starts. Then a seeded sample of mutations is tried,
the same number in each package, each in a copy of the tree: the recorded tests of the mutated function run, the most
specific first, until one fails or the time is up. A test counts only if it passed in the recorded run. The tests run in
a sandbox without network and with a process space of its own: mutated code may delete and kill.

| module | what it holds |
|---|---|
| ``operators`` | the mutations of a source: where, what, and the function around it |
| ``recorder`` | notes calls of functions by test; a module of its own in the recorded environment |
| ``trees`` | copies of the repository with an environment, and the sandbox |
| ``coverage`` | the recorded run, and the tests to try for a function |
| ``__main__`` | sample, run, report |
"""

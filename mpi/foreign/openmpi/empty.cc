// Nothing: libraries that programs of Open MPI name without calling them.

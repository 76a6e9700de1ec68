// Nothing: libraries that programs of Open MPI name, and that have nothing of their own.

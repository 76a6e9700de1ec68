// A program of another MPI library, which knows nothing of Ferry, and that library.
#ifdef FOREIGN_LIBRARY
extern "C" int MPI_Init(int*, char***) { return 0; }
#else
extern "C" int MPI_Init(int*, char***);
int main(int argc, char** argv) { return MPI_Init(&argc, &argv); }
#endif

/* A program that is compiled with the header of another MPI library, and runs on Ferry's library
 * with its binary interface: datatypes.
 */
#include "tests/mpi/foreign/interface.h"

/* ---- Datatypes ------------------------------------------------------------------------------- */

static void datatypes(void) {
  step = "MPI_BOTTOM";
  int numbers[4] = {1, 2, 3, 4}, got[4] = {0};
  int lengths[2] = {1, 2}, combiner = 0, integers = 0, addresses = 0, types = 0;
  MPI_Aint places[2];
  MPI_Datatype type, parts[2] = {MPI_INT, MPI_INT};
  OK(MPI_Get_address(&numbers[0], &places[0]));
  OK(MPI_Address(&numbers[2], &places[1]));
  OK(MPI_Type_create_struct(2, lengths, places, parts, &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Sendrecv(MPI_BOTTOM, 1, type, next, 3, got, 4, MPI_INT, before, 3, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
  CHECK(got[0] == 1 && got[1] == 3 && got[2] == 4);

  step = "what a datatype is made of";
  int of_integers[16];
  MPI_Aint of_addresses[4];
  MPI_Datatype of_types[4];
  OK(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
  CHECK(combiner == MPI_COMBINER_STRUCT && integers == 3 && addresses == 2 && types == 2);
  OK(MPI_Type_get_contents(type, 16, 4, 4, of_integers, of_addresses, of_types));
  CHECK(of_integers[0] == 2 && of_types[0] == MPI_INT && of_types[1] == MPI_INT);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_get_envelope(MPI_DOUBLE, &integers, &addresses, &types, &combiner));
  CHECK(combiner == MPI_COMBINER_NAMED);
  int sizes[2] = {4, 6}, part[2] = {2, 3}, start[2] = {1, 1};
  OK(MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_FORTRAN, MPI_FLOAT, &type));
  OK(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
  OK(MPI_Type_get_contents(type, 16, 4, 4, of_integers, of_addresses, of_types));
  CHECK(combiner == MPI_COMBINER_SUBARRAY && of_integers[0] == 2 && of_integers[1] == 4);
  CHECK(of_integers[7] == MPI_ORDER_FORTRAN && of_types[0] == MPI_FLOAT);
  OK(MPI_Type_free(&type));
  int distributions[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
  int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {2, 1}, bytes = 0;
  OK(MPI_Type_create_darray(2, 0, 2, sizes, distributions, arguments, grid, MPI_ORDER_C, MPI_INT,
                            &type));
  OK(MPI_Type_size(type, &bytes));
  CHECK(bytes == 2 * 6 * 4);
  OK(MPI_Type_get_contents(type, 16, 4, 4, of_integers, of_addresses, of_types));
  CHECK(of_integers[5] == MPI_DISTRIBUTE_BLOCK && of_integers[6] == MPI_DISTRIBUTE_CYCLIC);
  CHECK(of_integers[7] == MPI_DISTRIBUTE_DFLT_DARG && of_integers[8] == 2);
  CHECK(of_integers[11] == MPI_ORDER_C);
  OK(MPI_Type_free(&type));

  step = "datatypes that the standard has no more";
  MPI_Aint extent = 0, lb = 0, ub = 0;
  MPI_Datatype marked[3] = {MPI_LB, MPI_INT, MPI_UB};
  int ones[3] = {1, 1, 1};
  MPI_Aint at[3] = {-4, 0, 20};
  OK(MPI_Type_struct(3, ones, at, marked, &type));
  OK(MPI_Type_extent(type, &extent));
  OK(MPI_Type_lb(type, &lb));
  OK(MPI_Type_ub(type, &ub));
  OK(MPI_Type_size(type, &bytes));
  CHECK(lb == -4 && ub == 20 && extent == 24 && bytes == 4);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_hvector(2, 1, 16, MPI_DOUBLE, &type));
  OK(MPI_Type_extent(type, &extent));
  CHECK(extent == 24);
  OK(MPI_Type_free(&type));
  OK(MPI_Type_hindexed(2, ones, at, MPI_INT, &type));
  OK(MPI_Type_extent(type, &extent));
  CHECK(extent == 8);
  OK(MPI_Type_free(&type));

  step = "every predefined datatype";
  static const struct {
    MPI_Datatype type;
    int size;
    const char* name;
  } known[] = {{MPI_CHAR, 1, "MPI_CHAR"},
               {MPI_UNSIGNED_SHORT, 2, "MPI_UNSIGNED_SHORT"},
               {MPI_LONG, 8, "MPI_LONG"},
               {MPI_LONG_DOUBLE, 16, "MPI_LONG_DOUBLE"},
               {MPI_C_DOUBLE_COMPLEX, 16, "MPI_C_DOUBLE_COMPLEX"},
               {MPI_2INT, 8, "MPI_2INT"},
               {MPI_DOUBLE_INT, 12, "MPI_DOUBLE_INT"},
               {MPI_SHORT_INT, 6, "MPI_SHORT_INT"},
               {MPI_LONG_DOUBLE_INT, 20, "MPI_LONG_DOUBLE_INT"},
               {MPI_AINT, 8, "MPI_AINT"},
               {MPI_UINT64_T, 8, "MPI_UINT64_T"},
               {MPI_INTEGER8, 8, "MPI_INTEGER8"},
               {MPI_CXX_BOOL, 1, "MPI_CXX_BOOL"},
               {FLOAT16, 2, "MPI_REAL2"}};
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0;
    OK(MPI_Type_size(known[i].type, &bytes));
    OK(MPI_Type_get_name(known[i].type, name, &length));
    CHECK(bytes == known[i].size && strcmp(name, known[i].name) == 0);
  }
  OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type));
  OK(MPI_Type_size(type, &bytes));
  CHECK(bytes == 8);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  datatypes();
  return end_of_rank();
}

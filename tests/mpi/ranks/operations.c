/* Reduction operations without communication: their properties, MPI_Reduce_local, and a program's
 * own operations. */
#include "tests/mpi/ranks/check.h"

static void predefined(void) {
  step = "predefined operations";
  int a[3] = {1, -5, 7}, b[3] = {4, 2, 7}, commutes = 0;
  OK(MPI_Reduce_local(a, b, 3, MPI_INT, MPI_SUM));
  CHECK(b[0] == 5 && b[1] == -3 && b[2] == 14);
  OK(MPI_Reduce_local(a, b, 3, MPI_INT, MPI_MAX));
  CHECK(b[0] == 5 && b[1] == -3 && b[2] == 14);
  OK(MPI_Reduce_local_c(a, b, 2, MPI_INT, MPI_MIN));
  CHECK(b[0] == 1 && b[1] == -5 && b[2] == 14);
  OK(MPI_Reduce_local(NULL, NULL, 0, MPI_INT, MPI_SUM));
  struct {
    double value;
    int index;
  } x = {2, 9}, y = {2, 3};
  OK(MPI_Reduce_local(&x, &y, 1, MPI_DOUBLE_INT, MPI_MINLOC));
  CHECK(y.value == 2 && y.index == 3);
  OK(MPI_Op_commutative(MPI_SUM, &commutes));
  CHECK(commutes == 1);
  OK(MPI_Op_commutative(MPI_REPLACE, &commutes));
  CHECK(commutes == 0);
}

/* Operations that the standard does not list, and every other library computes. */
static void customary(void) {
  step = "customary operations";
  char a[3] = {1, -5, 7}, b[3] = {4, 2, 7};
  MPI_Aint yes = 5, no = 0;
  MPI_Count first = 0, second = 9;
  MPI_Offset both = 3;
  OK(MPI_Reduce_local(a, b, 3, MPI_CHAR, MPI_SUM));
  CHECK(b[0] == 5 && b[1] == -3 && b[2] == 14);
  OK(MPI_Reduce_local(a, b, 3, MPI_CHAR, MPI_MIN));
  CHECK(b[0] == 1 && b[1] == -5 && b[2] == 7);
  OK(MPI_Reduce_local(a, b, 3, MPI_CHAR, MPI_PROD));
  CHECK(b[0] == 1 && b[1] == 25 && b[2] == 49);
  OK(MPI_Allreduce(MPI_IN_PLACE, a, 3, MPI_CHAR, MPI_MAX, MPI_COMM_SELF));
  CHECK(a[0] == 1 && a[1] == -5 && a[2] == 7);
  OK(MPI_Reduce_local(a, b, 3, MPI_CHAR, MPI_BAND));
  CHECK(b[0] == 1 && b[1] == (25 & -5) && b[2] == (49 & 7));
  OK(MPI_Reduce_local(&no, &yes, 1, MPI_AINT, MPI_LOR));
  CHECK(yes == 1);
  OK(MPI_Reduce_local(&first, &second, 1, MPI_COUNT, MPI_LAND));
  CHECK(second == 0);
  OK(MPI_Reduce_local(&(MPI_Offset){1}, &both, 1, MPI_OFFSET, MPI_LXOR));
  CHECK(both == 0);
}

/* in - inout, of every element: neither commutative nor associative. */
static void subtract(void* in, void* inout, int* length, MPI_Datatype* type) {
  int size;
  CHECK(MPI_Type_size(*type, &size) == MPI_SUCCESS && size % sizeof(int) == 0);
  for (int i = 0; i < *length * size / (int)sizeof(int); ++i) {
    ((int*)inout)[i] = ((int*)in)[i] - ((int*)inout)[i];
  }
}

static void subtract_large(void* in, void* inout, MPI_Count* length, MPI_Datatype* type) {
  int small = (int)*length;
  subtract(in, inout, &small, type);
}

static void own(void) {
  step = "operations of the program";
  MPI_Op op;
  MPI_Datatype pair;
  int a[4] = {10, 20, 30, 40}, b[4] = {1, 2, 3, 4}, commutes = 1;
  OK(MPI_Type_contiguous(2, MPI_INT, &pair));
  OK(MPI_Type_commit(&pair));
  OK(MPI_Op_create(subtract, 0, &op));
  OK(MPI_Op_commutative(op, &commutes));
  CHECK(commutes == 0);
  OK(MPI_Reduce_local(a, b, 4, MPI_INT, op));
  CHECK(b[0] == 9 && b[3] == 36);
  OK(MPI_Reduce_local(a, b, 2, pair, op));
  CHECK(b[0] == 1 && b[3] == 4);
  expect_error(MPI_Reduce_local(a, b, 2, pair, MPI_SUM), MPI_ERR_OP, "MPI_SUM");
  expect_error(MPI_Reduce_local(a, a, 2, MPI_INT, MPI_SUM), MPI_ERR_BUFFER, "the same memory");
  OK(MPI_Op_free(&op));
  CHECK(op == MPI_OP_NULL);
  OK(MPI_Op_create_c(subtract_large, 1, &op));
  OK(MPI_Op_commutative(op, &commutes));
  CHECK(commutes == 1);
  OK(MPI_Reduce_local_c(a, b, 2, pair, op));
  CHECK(b[0] == 9 && b[3] == 36);
  OK(MPI_Op_free(&op));
  OK(MPI_Type_free(&pair));
}

static void mistakes(void) {
  step = "mistakes";
  int a = 1, b = 2, flag;
  MPI_Op op = MPI_SUM, freed;
  MPI_Datatype type;
  expect_error(MPI_Op_free(&op), MPI_ERR_OP, "MPI_SUM is predefined");
  CHECK(op == MPI_SUM);
  op = MPI_OP_NULL;
  expect_error(MPI_Op_free(&op), MPI_ERR_OP, "MPI_Op_free");
  OK(MPI_Op_create(subtract, 1, &op));
  freed = op;
  OK(MPI_Op_free(&op));
  expect_error(MPI_Op_free(&freed), MPI_ERR_OP, "freed");
  expect_error(MPI_Op_create(NULL, 1, &op), MPI_ERR_ARG, "user_fn");
  expect_error(MPI_Op_create(subtract, 1, NULL), MPI_ERR_ARG, "op");
  expect_error(MPI_Op_commutative((MPI_Op)MPI_INT, &flag), MPI_ERR_OP, "MPI_Op_commutative");
  expect_error(MPI_Op_commutative(MPI_SUM, NULL), MPI_ERR_ARG, "commute");
  expect_error(MPI_Reduce_local(&a, &b, 1, MPI_DOUBLE, MPI_BAND), MPI_ERR_OP,
               "MPI_BAND is not defined for MPI_DOUBLE");
  expect_error(MPI_Reduce_local(&a, &b, 1, MPI_INT, MPI_REPLACE), MPI_ERR_OP, "MPI_REPLACE");
  expect_error(MPI_Reduce_local(&a, &b, 1, MPI_WCHAR, MPI_SUM), MPI_ERR_OP, "MPI_WCHAR");
  expect_error(MPI_Reduce_local(&a, &b, -1, MPI_INT, MPI_SUM), MPI_ERR_COUNT, "-1");
  expect_error(MPI_Reduce_local(NULL, &b, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER, "inbuf");
  expect_error(MPI_Reduce_local(&a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER, "inoutbuf");
  expect_error(MPI_Reduce_local(&a, &b, 1, MPI_DATATYPE_NULL, MPI_SUM), MPI_ERR_TYPE,
               "MPI_Datatype");
  OK(MPI_Type_contiguous(1, MPI_INT, &type));
  expect_error(MPI_Reduce_local(&a, &b, 1, type, MPI_SUM), MPI_ERR_TYPE, "committed");
  OK(MPI_Type_free(&type));
  CHECK(a == 1 && b == 2);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  predefined();
  customary();
  own();
  mistakes();
  return end_well("all operations were right");
}

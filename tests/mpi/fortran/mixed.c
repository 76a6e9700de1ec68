// One program in C and in Fortran over all its interfaces: what one language makes serves the
// others (MPI 5.0, section 19.3). Each is a row of the same functions; mixed.F90 has those of
// Fortran.
//
// With an argument, a tool in C has to have seen as many calls of MPI_Send (mixed_tool.c).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int failures;

static void Check(int good, const char* what, const char* first, const char* second) {
  if (!good) {
    ++failures;
    printf("wrong: %s of %s in %s\n", what, first, second);
  }
}

// ---- C's functions, with the handles of Fortran -------------------------------------------------

int c_copies, c_deletes, c_reductions, c_handled;

static int Copy(MPI_Comm comm, int keyval, void* extra_state, void* in, void* out, int* flag) {
  (void)comm, (void)keyval;
  ++c_copies;
  *(void**)out = in;
  *flag = 1;
  return extra_state == &c_copies ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static int Delete(MPI_Comm comm, int keyval, void* value, void* extra_state) {
  (void)comm, (void)keyval, (void)value;
  ++c_deletes;
  return extra_state == &c_copies ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static void Add(void* in, void* inout, int* n, MPI_Datatype* type) {
  ++c_reductions;
  for (int i = 0; *type == MPI_INTEGER && i < *n; ++i) {
    ((int*)inout)[i] += ((int*)in)[i];
  }
}

static void OnError(MPI_Comm* comm, int* code, ...) {
  int class = MPI_SUCCESS;
  MPI_Error_class(*code, &class);
  c_handled += *comm != MPI_COMM_NULL && class == MPI_ERR_RANK;
}

static void c_make_keyval(int is_own, MPI_Fint* keyval) {
  MPI_Comm_create_keyval(is_own ? Copy : MPI_COMM_DUP_FN, is_own ? Delete : MPI_COMM_NULL_DELETE_FN,
                         keyval, &c_copies);
}
static void c_set_attr(MPI_Fint* comm, MPI_Fint* keyval, MPI_Aint* value) {
  MPI_Comm_set_attr(MPI_Comm_f2c(*comm), *keyval, (void*)*value);
}
static void c_get_attr(MPI_Fint* comm, MPI_Fint* keyval, MPI_Aint* value, MPI_Fint* flag) {
  void* found = NULL;
  MPI_Comm_get_attr(MPI_Comm_f2c(*comm), *keyval, &found, flag);
  *value = (MPI_Aint)found;
}
static void c_duplicate(MPI_Fint* comm, MPI_Fint* made) {
  MPI_Comm duplicate = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_Comm_f2c(*comm), &duplicate);
  *made = MPI_Comm_c2f(duplicate);
}
static void c_free(MPI_Fint* comm) {
  MPI_Comm freed = MPI_Comm_f2c(*comm);
  MPI_Comm_free(&freed);
  *comm = MPI_Comm_c2f(freed);
}
static void c_make_op(MPI_Fint* op) {
  MPI_Op made = MPI_OP_NULL;
  MPI_Op_create(Add, 1, &made);
  *op = MPI_Op_c2f(made);
}
static int c_reduce(MPI_Fint* comm, MPI_Fint* op, MPI_Fint* number) {
  int total = 0;
  const int seven = 7;
  MPI_Allreduce(number, &total, 1, MPI_INTEGER, MPI_Op_f2c(*op), MPI_Comm_f2c(*comm));
  MPI_Reduce_local(&seven, &total, 1, MPI_INTEGER, MPI_Op_f2c(*op));
  return total;
}
static void c_make_handler(MPI_Fint* handler) {
  MPI_Errhandler made = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(OnError, &made);
  *handler = MPI_Errhandler_c2f(made);
}
static int c_fail(MPI_Fint* comm, MPI_Fint* handler) {
  int class = MPI_SUCCESS;
  MPI_Comm_set_errhandler(MPI_Comm_f2c(*comm), MPI_Errhandler_f2c(*handler));
  MPI_Error_class(MPI_Send(comm, 1, MPI_INTEGER, 99, 0, MPI_Comm_f2c(*comm)), &class);
  MPI_Comm_set_errhandler(MPI_Comm_f2c(*comm), MPI_ERRORS_RETURN);
  return class;
}
static void c_make_type(MPI_Fint* first, MPI_Fint* second, MPI_Fint* type) {
  const int lengths[2] = {1, 1};
  const MPI_Datatype types[2] = {MPI_INTEGER, MPI_INTEGER};
  MPI_Aint places[2];
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Get_address(first, &places[0]);
  MPI_Get_address(second, &places[1]);
  MPI_Type_create_struct(2, lengths, places, types, &made);
  MPI_Type_commit(&made);
  *type = MPI_Type_c2f(made);
}
static void c_send(MPI_Fint* comm, MPI_Fint* type, MPI_Fint* to) {
  MPI_Send(MPI_BOTTOM, 1, MPI_Type_f2c(*type), *to, 5, MPI_Comm_f2c(*comm));
}
static void c_recv(MPI_Fint* comm, MPI_Fint* type, MPI_Fint* from, MPI_F08_status* status) {
  MPI_Status received;
  MPI_Recv(MPI_BOTTOM, 1, MPI_Type_f2c(*type), *from, 5, MPI_Comm_f2c(*comm), &received);
  MPI_Status_c2f08(&received, status);
}
static void c_read_status(MPI_F08_status* status, MPI_Fint* words) {
  MPI_Status read;
  MPI_Status_f082c(status, &read);
  words[0] = read.MPI_SOURCE;
  words[1] = read.MPI_TAG;
  MPI_Get_count(&read, MPI_INTEGER, &words[2]);
}

// ---- The rows -----------------------------------------------------------------------------------

typedef struct Language {
  const char* name;
  int is_c;
  int sends;  // of each call of `send` and `fail`, that a tool for MPI_Send sees
  int *copies, *deletes, *reductions, *handled;
  void (*make_keyval)(int, MPI_Fint*);
  void (*set_attr)(MPI_Fint*, MPI_Fint*, MPI_Aint*);
  void (*get_attr)(MPI_Fint*, MPI_Fint*, MPI_Aint*, MPI_Fint*);
  void (*duplicate)(MPI_Fint*, MPI_Fint*);
  void (*free)(MPI_Fint*);
  void (*make_op)(MPI_Fint*);
  int (*reduce)(MPI_Fint*, MPI_Fint*, MPI_Fint*);
  void (*make_handler)(MPI_Fint*);
  int (*fail)(MPI_Fint*, MPI_Fint*);
  void (*make_type)(MPI_Fint*, MPI_Fint*, MPI_Fint*);
  void (*send)(MPI_Fint*, MPI_Fint*, MPI_Fint*);
  void (*recv)(MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_F08_status*);
  void (*read_status)(MPI_F08_status*, MPI_Fint*);
} Language;

#define DECLARED(p)                                                                               \
  extern int p##_copies, p##_deletes, p##_reductions, p##_handled;                                \
  void p##_make_keyval(int, MPI_Fint*), p##_set_attr(MPI_Fint*, MPI_Fint*, MPI_Aint*);            \
  void p##_get_attr(MPI_Fint*, MPI_Fint*, MPI_Aint*, MPI_Fint*), p##_make_op(MPI_Fint*);          \
  void p##_duplicate(MPI_Fint*, MPI_Fint*), p##_free(MPI_Fint*), p##_make_handler(MPI_Fint*);     \
  int p##_reduce(MPI_Fint*, MPI_Fint*, MPI_Fint*), p##_fail(MPI_Fint*, MPI_Fint*);                \
  void p##_make_type(MPI_Fint*, MPI_Fint*, MPI_Fint*), p##_send(MPI_Fint*, MPI_Fint*, MPI_Fint*); \
  void p##_recv(MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_F08_status*);                                \
  void p##_read_status(MPI_F08_status*, MPI_Fint*);
#define ROW(p, name, is_c, sends)                                                                 \
  {                                                                                               \
    name, is_c, sends, &p##_copies, &p##_deletes, &p##_reductions, &p##_handled, p##_make_keyval, \
        p##_set_attr, p##_get_attr, p##_duplicate, p##_free, p##_make_op, p##_reduce,             \
        p##_make_handler, p##_fail, p##_make_type, p##_send, p##_recv, p##_read_status            \
  }

DECLARED(file)
DECLARED(module)
DECLARED(typed)
DECLARED(module_profiled)
DECLARED(typed_profiled)
void old_put(MPI_Fint*, MPI_Fint*, MPI_Fint*);
void old_get(MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);

static const Language kLanguages[] = {
    ROW(c, "C", 1, 1),
    ROW(file, "mpif.h", 0, 1),
    ROW(module, "mpi", 0, 1),
    ROW(typed, "mpi_f08", 0, 1),
    ROW(module_profiled, "PMPI of mpi", 0, 0),
    ROW(typed_profiled, "PMPI of mpi_f08", 0, 0),
};
enum { kCount = sizeof(kLanguages) / sizeof(kLanguages[0]) };

// ---- The cases: `one` makes, `two` uses ---------------------------------------------------------

static int rank, size, sends;

// Checks that `reader` finds what `writer` has set: C has pointers, Fortran what they point to.
static void CheckAttribute(const Language* writer, const Language* reader, MPI_Fint comm,
                           MPI_Fint keyval, MPI_Aint value, const char* what) {
  MPI_Aint found = 0;
  MPI_Fint flag = 0;
  reader->get_attr(&comm, &keyval, &found, &flag);
  Check(flag == 1, what, writer->name, reader->name);
  if (flag == 1 && reader->is_c && !writer->is_c) {
    found = *(MPI_Aint*)found;
  }
  Check(found == value, what, writer->name, reader->name);
}

// `maker` has the keyval, `one` sets, `two` reads, and they take turns in duplicating.
static void Attributes(const Language* maker, const Language* one, const Language* two) {
  static int target[2];
  const MPI_Aint value = one->is_c ? (MPI_Aint)target : ((MPI_Aint)1 << 40) + 8;
  MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD), comm = 0, copy = 0, keyval = 0;
  for (int is_own = 0; is_own < 2; ++is_own) {
    const int copies = *maker->copies, deletes = *maker->deletes;
    maker->make_keyval(is_own, &keyval);
    one->duplicate(&world, &comm);
    one->set_attr(&comm, &keyval, (MPI_Aint*)&value);
    CheckAttribute(one, two, comm, keyval, value, "an attribute");
    two->duplicate(&comm, &copy);
    // Fortran's own copy is an integer, of C's pointer too.
    const int grows = is_own && !maker->is_c;
    CheckAttribute(grows ? maker : one, two, copy, keyval, value + (grows ? 1000 : 0),
                   "a copied attribute");
    CheckAttribute(one, two, comm, keyval, value, "the attribute that was copied");
    two->free(&copy);
    one->free(&comm);
    Check(comm == MPI_Comm_c2f(MPI_COMM_NULL) && copy == comm, "a freed handle", one->name,
          two->name);
    Check(*maker->copies == copies + is_own && *maker->deletes == deletes + 2 * is_own,
          "functions of attributes", maker->name, two->name);
    MPI_Comm_free_keyval(&keyval);
  }
}

// Values of the deprecated calls are INTEGER: C has a pointer to one, and the others more bits.
static void OldAttributes(const Language* language) {
  MPI_Fint comm = MPI_Comm_c2f(MPI_COMM_SELF), keyval = 0, value = -5, flag = 0;
  MPI_Aint wide = 0;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
  old_put(&comm, &keyval, &value);
  language->get_attr(&comm, &keyval, &wide, &flag);
  Check(flag == 1 && (language->is_c ? *(int*)wide : wide) == -5, "an INTEGER", "MPI_ATTR_PUT",
        language->name);
  wide = ((MPI_Aint)3 << 40) + 77;
  language->set_attr(&comm, &keyval, &wide);
  old_get(&comm, &keyval, &value, &flag);
  Check(flag == 1 && value == 77, "what fits of an attribute", language->name, "MPI_ATTR_GET");
  MPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
  MPI_Comm_free_keyval(&keyval);
  keyval = MPI_TAG_UB;
  language->get_attr(&comm, &keyval, &wide, &flag);
  old_get(&comm, &keyval, &value, &flag);
  Check(value > 32767 && value == (language->is_c ? *(int*)wide : wide), "MPI_TAG_UB",
        language->name, "MPI_ATTR_GET");
}

static void Operations(const Language* one, const Language* two) {
  MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD), op = 0, number = rank + 1;
  const int before = *one->reductions;
  one->make_op(&op);
  Check(two->reduce(&world, &op, &number) == size * (size + 1) / 2 + 7, "an operation", one->name,
        two->name);
  Check(*one->reductions > before, "the function of an operation", one->name, two->name);
  MPI_Op made = MPI_Op_f2c(op);
  MPI_Op_free(&made);
}

static void Handlers(const Language* one, const Language* two) {
  MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD), comm = 0, handler = 0;
  const int before = *one->handled;
  one->make_handler(&handler);
  two->duplicate(&world, &comm);
  Check(two->fail(&comm, &handler) == MPI_ERR_RANK, "an error", one->name, two->name);
  sends += two->sends;
  Check(*one->handled == before + 1, "an error handler", one->name, two->name);
  MPI_Errhandler made = MPI_Errhandler_f2c(handler);
  MPI_Errhandler_free(&made);
  one->free(&comm);
}

// A datatype of `one` with absolute addresses; `two` sends and receives by it, from MPI_BOTTOM.
static void Messages(const Language* one, const Language* two) {
  static int from[9], to[9];
  MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD), out = 0, in = 0, words[3] = {0};
  MPI_Fint other = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_F08_status status = {0};
  from[1] = 10 * rank + 1;
  from[8] = 10 * rank + 2;
  to[2] = to[7] = -1;
  one->make_type(&from[1], &from[8], &out);
  one->make_type(&to[7], &to[2], &in);
  two->send(&world, &out, &other);
  sends += two->sends;
  two->recv(&world, &in, &before, &status);
  Check(to[7] == 10 * before + 1 && to[2] == 10 * before + 2, "absolute addresses", one->name,
        two->name);
  one->read_status(&status, words);
  Check(words[0] == before && words[1] == 5 && words[2] == 2, "a status", two->name, one->name);
  MPI_Datatype types[2] = {MPI_Type_f2c(out), MPI_Type_f2c(in)};
  Check(MPI_Type_c2f(types[0]) == out && types[0] != types[1], "a handle", one->name, "C");
  MPI_Type_free(&types[0]);
  MPI_Type_free(&types[1]);
}

int main(int argc, char** argv) {
  (void)argv;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int one = 0; one < kCount; ++one) {
    OldAttributes(&kLanguages[one]);
    for (int two = 0; two < kCount; ++two) {
      for (int maker = 0; maker < kCount; ++maker) {
        Attributes(&kLanguages[maker], &kLanguages[one], &kLanguages[two]);
      }
      Operations(&kLanguages[one], &kLanguages[two]);
      Handlers(&kLanguages[one], &kLanguages[two]);
      Messages(&kLanguages[one], &kLanguages[two]);
    }
  }
  int (*seen)(void) = (int (*)(void))(intptr_t)dlsym(RTLD_DEFAULT, "sends_that_the_tool_saw");
  Check(argc == 1 || (seen != NULL && seen() == sends), "calls", "all languages", "a tool");
  if (failures == 0) {
    printf("rank %d: ok\n", rank);
  }
  MPI_Finalize();
  return failures != 0;
}

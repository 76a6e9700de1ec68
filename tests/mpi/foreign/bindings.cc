// The bindings for C++ (MPI::) of MPICH and Open MPI: what they take from their libraries beside
// MPI itself, between any number of ranks. mpi.h of MPICH comes with them where MPICH_SKIP_MPICXX
// is not defined, that of Open MPI where OMPI_SKIP_MPICXX is not.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

int failures = 0;

void Check(bool good, const char* what) {
  if (!good) {
    ++failures;
    std::printf("wrong: %s\n", what);
  }
}

// The first element is a maximum, all others are sums.
void LargerThenSum(const void* in, void* inout, int length, const MPI::Datatype& datatype) {
  const int* const a = static_cast<const int*>(in);
  int* const b = static_cast<int*>(inout);
  Check(datatype == MPI::INT, "the datatype of an operation");
  b[0] = a[0] > b[0] ? a[0] : b[0];
  for (int i = 1; i < length; ++i) {
    b[i] += a[i];
  }
}

// Another operation at the same time: they are told apart.
void Multiply(const void* in, void* inout, int length, const MPI::Datatype&) {
  for (int i = 0; i < length; ++i) {
    static_cast<int*>(inout)[i] *= static_cast<const int*>(in)[i];
  }
}

int copies = 0;
int deletes = 0;
int handled = 0;

int Copy(const MPI::Comm&, int, void* extra_state, void* in, void* out, bool& flag) {
  ++copies;
  *static_cast<void**>(out) = reinterpret_cast<char*>(in) + reinterpret_cast<intptr_t>(extra_state);
  flag = true;
  return MPI::SUCCESS;
}

int Delete(MPI::Comm&, int, void*, void*) {
  ++deletes;
  return MPI::SUCCESS;
}

void OnError(MPI::Comm& comm, int* code, ...) {
  handled = MPI::Get_error_class(*code);
  Check(comm.Get_size() == 1, "the communicator that an error handler gets");
}

void OnWindowError(MPI::Win& win, int* code, ...) {
  handled = 100 + MPI::Get_error_class(*code);
  MPI::Group group = win.Get_group();
  Check(group.Get_size() == 1, "the window that an error handler gets");
  group.Free();
}

#ifdef OMPI_MAJOR_VERSION
using Attribute = const void*;
#else
using Attribute = void*;
#endif

int CopyOfType(const MPI::Datatype& type, int, void*, Attribute in, void* out, bool& flag) {
  Check(type.Get_size() == 12, "the datatype that a copy function gets");
  *static_cast<Attribute*>(out) = in;
  flag = true;
  return MPI::SUCCESS;
}

int DeleteOfType(MPI::Datatype&, int, void*, void*) {
  ++deletes;
  return MPI::SUCCESS;
}

int Query(void* extra_state, MPI::Status& status) {
  status.Set_elements(MPI::INT, *static_cast<int*>(extra_state));
  status.Set_cancelled(false);
  status.Set_source(MPI::UNDEFINED);
  status.Set_tag(MPI::UNDEFINED);
  return MPI::SUCCESS;
}

int Free(void* extra_state) {
  *static_cast<int*>(extra_state) = -1;
  return MPI::SUCCESS;
}

int Cancel(void*, bool) { return MPI::SUCCESS; }

// The compiler does not know the class: this calls through its table of functions.
__attribute__((noinline)) int RankIn(const MPI::Comm& comm) { return comm.Get_rank(); }
__attribute__((noinline)) int SizeOf(const MPI::Datatype& type) { return type.Get_size(); }

void TryOperations(int rank, int n) {
  MPI::Op op;
  MPI::Op other;
  op.Init(LargerThenSum, true);
  other.Init(Multiply, true);
  const int mine[2] = {rank, 1};
  int got[2] = {};
  MPI::COMM_WORLD.Allreduce(mine, got, 2, MPI::INT, op);
  Check(got[0] == n - 1 && got[1] == n, "an operation of the program");
  const int two = 2;
  MPI::COMM_WORLD.Allreduce(&two, got, 1, MPI::INT, other);
  Check(got[0] == 1 << n, "another operation of the program");
  op.Free();
  other.Free();
  // One function for any number of operations, one after the other.
  for (int i = 0; i < 300; ++i) {
    op.Init(Multiply, true);
    op.Free();
  }
  op.Init(Multiply, true);
  MPI::COMM_SELF.Allreduce(&two, got, 1, MPI::INT, op);
  Check(got[0] == 2, "an operation after many others");
  op.Free();
}

void TryDatatypes(int rank) {
  MPI::Datatype type = MPI::INT.Create_contiguous(3);
  type.Commit();
  Check(SizeOf(type) == 12 && SizeOf(MPI::DOUBLE) == 8, "sizes of datatypes");
  int words[3] = {rank, rank + 1, rank + 2};
  int got[3] = {};
  MPI::COMM_SELF.Sendrecv(words, 1, type, 0, 1, got, 3, MPI::INT, 0, 1);
  Check(got[2] == rank + 2, "a datatype of the program");
  int key = MPI::Datatype::Create_keyval(CopyOfType, DeleteOfType, nullptr);
  type.Set_attr(key, words);
  MPI::Datatype copy = type.Dup();
  void* value = nullptr;
  Check(copy.Get_attr(key, &value) && value == words, "an attribute of a datatype");
  int numbers[1] = {};
  MPI::Aint places[1] = {};
  MPI::Datatype parts[1];
  type.Get_contents(1, 0, 1, numbers, places, parts);
  Check(numbers[0] == 3 && parts[0] == MPI::INT, "the contents of a datatype");
  copy.Free();
  type.Free();
  Check(deletes == 4 && copy == MPI::DATATYPE_NULL, "attributes of freed datatypes are deleted");
  MPI::Datatype::Free_keyval(key);
}

void TryRequestsAndWindows(int rank) {
  int state = 7;
#ifdef OMPI_MAJOR_VERSION  // MPICH's header does not declare it as the standard does
  MPI::Grequest request = MPI::Grequest::Start(Query, Free, Cancel, &state);
  MPI::Status status;
  Check(!request.Test(), "a generalised request is not complete");
  request.Complete();
  request.Wait(status);
  Check(status.Get_elements(MPI::INT) == 7 && state == -1, "a generalised request");
#endif

  int memory = rank;
  MPI::Win win =
      MPI::Win::Create(&memory, sizeof(memory), sizeof(int), MPI::INFO_NULL, MPI::COMM_SELF);
  const int more = 5;
  win.Fence(0);
  win.Accumulate(&more, 1, MPI::INT, 0, 0, 1, MPI::INT, MPI::SUM);
  win.Fence(0);
  Check(memory == rank + 5, "a window");
  MPI::Errhandler handler = MPI::Win::Create_errhandler(OnWindowError);
  win.Set_errhandler(handler);
  win.Put(&more, 1, MPI::INT, 9, 0, 1, MPI::INT);
  Check(handled == 100 + MPI::ERR_RANK, "an error handler of a window");
  handler.Free();
  win.Free();
  Check(win == MPI::WIN_NULL, "a window that was freed");
}

void TryClasses() {
  MPI::Comm& clone = MPI::COMM_WORLD.Clone();
  Check(RankIn(clone) == MPI::COMM_WORLD.Get_rank(), "a rank in a clone");
  clone.Free();
  delete &clone;
  MPI::Info info = MPI::Info::Create();
  info.Set("key", "value");
  char value[10] = {};
  Check(info.Get("key", 9, value) && std::strcmp(value, "value") == 0, "an info object");
  info.Free();
#ifdef OMPI_MAJOR_VERSION
  // It has no exceptions: the code stands in a variable.
  MPI::Intracomm self = MPI::COMM_SELF.Dup();
  self.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
  self.Send(value, 1, MPI::CHAR, 4, 0);
  Check(MPI::Get_error_class(MPI::mpi_errno) == MPI::ERR_RANK, "the code of an error");
  self.Free();
#endif
}

}  // namespace

int main(int argc, char** argv) {
  MPI::Init(argc, argv);
  const int rank = MPI::COMM_WORLD.Get_rank();
  const int n = MPI::COMM_WORLD.Get_size();
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  Check(std::strstr(version, "Ferry") != nullptr, "this runs on Ferry");

  TryOperations(rank, n);
  MPI::Intracomm self = MPI::COMM_SELF.Dup();
  const MPI::Errhandler handler = MPI::Comm::Create_errhandler(OnError);
  self.Set_errhandler(handler);
  self.Send(&rank, 1, MPI::INT, 4, 0);
  Check(handled == MPI::ERR_RANK, "an error handler");
  int key = MPI::Comm::Create_keyval(Copy, Delete, reinterpret_cast<void*>(intptr_t{8}));
  int64_t words[2] = {5, 6};
  self.Set_attr(key, words);
  MPI::Intracomm other = self.Dup();
  void* value = nullptr;
  Check(other.Get_attr(key, &value) && value == &words[1] && copies == 1, "a copy of an attribute");
  other.Free();
  self.Delete_attr(key);
  Check(deletes == 2, "attributes are deleted");
  MPI::Comm::Free_keyval(key);
  self.Free();
  TryDatatypes(rank);
  TryRequestsAndWindows(rank);
  TryClasses();

  const bool periods[1] = {true};
  MPI::Cartcomm ring = MPI::COMM_WORLD.Create_cart(1, &n, periods, false);
  int left = 0;
  int right = 0;
  ring.Shift(0, 1, left, right);
  MPI::Status status;
  int from = -1;
  ring.Sendrecv(&rank, 1, MPI::INT, right, 3, &from, 1, MPI::INT, left, 3, status);
  Check(from == (rank + n - 1) % n && status.Get_source() == left && status.Get_tag() == 3,
        "a ring of MPI::Cartcomm");
  ring.Free();
  if (failures == 0) {
    std::printf("rank %d: ok\n", rank);
  }
  MPI::Finalize();
  return 0;
}

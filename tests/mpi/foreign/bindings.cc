// MPICH's bindings for C++ (MPI::): what they call in libmpi.so.12 beside MPI itself, between any
// number of ranks. mpi.h comes with them where MPICH_SKIP_MPICXX is not defined.
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

}  // namespace

int main(int argc, char** argv) {
  MPI::Init(argc, argv);
  const int rank = MPI::COMM_WORLD.Get_rank();
  const int n = MPI::COMM_WORLD.Get_size();
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  Check(std::strstr(version, "Ferry") != nullptr, "this runs on Ferry");

  MPI::Op op;
  op.Init(LargerThenSum, true);
  const int mine[2] = {rank, 1};
  int got[2] = {};
  MPI::COMM_WORLD.Allreduce(mine, got, 2, MPI::INT, op);
  Check(got[0] == n - 1 && got[1] == n, "an operation of the program");
  op.Free();

  MPI::Intracomm self = MPI::COMM_SELF.Dup();
  const MPI::Errhandler handler = MPI::Comm::Create_errhandler(OnError);
  self.Set_errhandler(handler);
  self.Send(mine, 1, MPI::INT, 4, 0);
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

// Functions and objects of Open MPI's bindings for C++ that its programs take from the library
// (bindings.h). Callbacks of C++ reach MPI as those of C that know them.
//
// Calls for the library's own sake are PMPI's: a tool sees what the program has asked for.
#include <cstdio>

#include "mpi/foreign/handled.h"
#include "mpi/foreign/openmpi/communicators.h"

#define FERRY_SHOWN __attribute__((visibility("default")))

using ferry::bindings::HandlesOf;
using ferry::bindings::Truths;
using ferry::foreign::Handled;
using ferry::foreign::HandlerCaller;

// ---- What libmpi.so.40 has for this (languages.cc) ----------------------------------------------

extern "C" void ompi_op_set_cxx_callback(MPI_Op op, void (*function)());
extern "C" void ferry_openmpi_set_handler_caller(MPI_Errhandler errhandler, HandlerCaller* call);

// ---- Classes ------------------------------------------------------------------------------------

namespace MPI {

Cartcomm::~Cartcomm() = default;
Comm_Null::~Comm_Null() = default;
Datatype::~Datatype() = default;
Errhandler::~Errhandler() = default;
File::~File() = default;
Graphcomm::~Graphcomm() = default;
Grequest::~Grequest() = default;
Group::~Group() = default;
Info::~Info() = default;
Intercomm::~Intercomm() = default;
Intracomm::~Intracomm() = default;
Op::~Op() = default;
Prequest::~Prequest() = default;
Request::~Request() = default;
Status::~Status() = default;
Win::~Win() = default;

Comm::Comm() = default;
Comm::Comm(const Comm_Null& other) : Comm_Null(other) {}

void Datatype::Free() { MPI_Type_free(&handle_); }

void Datatype::Pack(const void* in, int incount, void* out, int outsize, int& position,
                    const Comm& comm) const {
  MPI_Pack(in, incount, handle_, out, outsize, &position, comm.handle());
}

void Datatype::Unpack(const void* in, int insize, void* out, int outcount, int& position,
                      const Comm& comm) const {
  MPI_Unpack(in, insize, &position, out, outcount, handle_, comm.handle());
}

int Datatype::Pack_size(int incount, const Comm& comm) const {
  int size = 0;
  MPI_Pack_size(incount, handle_, comm.handle(), &size);
  return size;
}

void Datatype::Get_contents(int max_integers, int max_addresses, int max_datatypes, int integers[],
                            Aint addresses[], Datatype datatypes[]) const {
  int of_integers = 0;
  int of_addresses = 0;
  int of_datatypes = 0;
  int combiner = 0;
  PMPI_Type_get_envelope(handle_, &of_integers, &of_addresses, &of_datatypes, &combiner);
  auto* const found = new MPI_Datatype[ferry::bindings::SizeOf(max_datatypes)];
  const int code = MPI_Type_get_contents(handle_, max_integers, max_addresses, max_datatypes,
                                         integers, addresses, found);
  for (int i = 0; code == MPI_SUCCESS && i < max_datatypes && i < of_datatypes; ++i) {
    datatypes[i] = Datatype(found[i]);
  }
  delete[] found;
}

void Win::Free() { MPI_Win_free(&handle_); }

void File::Close() { MPI_File_close(&handle_); }

void Comm::Alltoallw(const void* sendbuf, const int sendcounts[], const int sdispls[],
                     const Datatype sendtypes[], void* recvbuf, const int recvcounts[],
                     const int rdispls[], const Datatype recvtypes[]) const {
  int is_inter = 0;
  int size = 0;
  PMPI_Comm_test_inter(handle_, &is_inter);
  is_inter != 0 ? PMPI_Comm_remote_size(handle_, &size) : PMPI_Comm_size(handle_, &size);
  // MPI reads no types to send where it works in place.
  const HandlesOf<MPI_Datatype, Datatype> ours_to_send(sendbuf == MPI_IN_PLACE ? 0 : size,
                                                       sendtypes);
  const HandlesOf<MPI_Datatype, Datatype> ours_to_receive(size, recvtypes);
  MPI_Alltoallw(sendbuf, sendcounts, sdispls, ours_to_send.get(), recvbuf, recvcounts, rdispls,
                ours_to_receive.get(), handle_);
}

Intercomm Intracomm::Create_intercomm(int local_leader, const Comm& peer_comm, int remote_leader,
                                      int tag) const {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Intercomm_create(handle_, local_leader, peer_comm.handle(), remote_leader, tag, &made);
  return Intercomm(made);
}

Cartcomm Intracomm::Create_cart(int ndims, const int dims[], const bool periods[],
                                bool reorder) const {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Cart_create(handle_, ndims, dims, Truths(ndims, periods).get(), reorder ? 1 : 0, &made);
  return Cartcomm(made);
}

Graphcomm Intracomm::Create_graph(int nnodes, const int index[], const int edges[],
                                  bool reorder) const {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Graph_create(handle_, nnodes, index, edges, reorder ? 1 : 0, &made);
  return Graphcomm(made);
}

Intercomm Intracomm::Accept(const char* port_name, const Info& info, int root) const {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_accept(port_name, info.handle(), root, handle_, &made);
  return Intercomm(made);
}

Intercomm Intracomm::Connect(const char* port_name, const Info& info, int root) const {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_connect(port_name, info.handle(), root, handle_, &made);
  return Intercomm(made);
}

Intercomm Intracomm::Spawn(const char* command, const char* argv[], int maxprocs, const Info& info,
                           int root) const {
  return Intracomm::Spawn(command, argv, maxprocs, info, root, MPI_ERRCODES_IGNORE);
}

Intercomm Intracomm::Spawn(const char* command, const char* argv[], int maxprocs, const Info& info,
                           int root, int errcodes[]) const {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_spawn(command, const_cast<char**>(argv), maxprocs, info.handle(), root, handle_, &made,
                 errcodes);
  return Intercomm(made);
}

Intercomm Intracomm::Spawn_multiple(int count, const char* commands[], const char** argv[],
                                    const int maxprocs[], const Info infos[], int root) {
  return Intracomm::Spawn_multiple(count, commands, argv, maxprocs, infos, root,
                                   MPI_ERRCODES_IGNORE);
}

Intercomm Intracomm::Spawn_multiple(int count, const char* commands[], const char** argv[],
                                    const int maxprocs[], const Info infos[], int root,
                                    int errcodes[]) {
  MPI_Comm made = MPI_COMM_NULL;
  int rank = 0;
  PMPI_Comm_rank(handle_, &rank);
  const HandlesOf<MPI_Info, Info> ours(rank == root ? count : 0, infos);  // others have none
  MPI_Comm_spawn_multiple(count, const_cast<char**>(commands), const_cast<char***>(argv), maxprocs,
                          ours.get(), root, handle_, &made, errcodes);
  return Intercomm(made);
}

}  // namespace MPI

// ---- Communicators in callbacks -----------------------------------------------------------------

namespace {

// Calls function(an object of the class that this communicator's is).
template <typename Function>
int CallWith(MPI_Comm comm, Function function) {
  int is_inter = 0;
  int topology = MPI_UNDEFINED;
  if (comm != MPI_COMM_NULL) {
    PMPI_Comm_test_inter(comm, &is_inter);
  }
  if (is_inter != 0) {
    MPI::Intercomm object(comm);
    return function(object);
  }
  if (comm != MPI_COMM_NULL) {
    PMPI_Topo_test(comm, &topology);
  }
  if (topology == MPI_CART) {
    MPI::Cartcomm object(comm);
    return function(object);
  }
  if (topology == MPI_GRAPH) {
    MPI::Graphcomm object(comm);
    return function(object);
  }
  MPI::Intracomm object(comm);
  return function(object);
}

template <typename Function>
int CallWith(MPI_Datatype datatype, Function function) {
  MPI::Datatype object(datatype);
  return function(object);
}

template <typename Function>
int CallWith(MPI_Win win, Function function) {
  MPI::Win object(win);
  return function(object);
}

template <typename Function>
Function* As(void (*function)()) {
  return reinterpret_cast<Function*>(function);
}

}  // namespace

// ---- Attributes ---------------------------------------------------------------------------------

namespace {

// The extra state of a keyval: of each pair of functions one is null. Lives as long as the
// process: attributes may outlive their keyval.
template <typename Handle, typename Class>
struct Keyval {
  using CopyInC = int(Handle, int, void*, void*, void*, int*);
  using DeleteInC = int(Handle, int, void*, void*);

  static int Copy(Handle object, int keyval, void* state, void* in, void* out, int* flag) {
    const auto& own = *static_cast<const Keyval*>(state);
    *flag = 0;
    if (own.c_copy != nullptr) {
      return own.c_copy(object, keyval, own.extra_state, in, out, flag);
    }
    if (own.copy == nullptr) {
      return MPI_SUCCESS;
    }
    return CallWith(object, [&](Class& from) {
      bool is_copied = false;
      const int code = own.copy(from, keyval, own.extra_state, in, out, is_copied);
      *flag = is_copied ? 1 : 0;
      return code;
    });
  }
  static int Delete(Handle object, int keyval, void* value, void* state) {
    const auto& own = *static_cast<const Keyval*>(state);
    if (own.c_remove != nullptr) {
      return own.c_remove(object, keyval, value, own.extra_state);
    }
    return own.remove == nullptr ? MPI_SUCCESS : CallWith(object, [&](Class& from) {
      return own.remove(from, keyval, value, own.extra_state);
    });
  }

  CopyInC* c_copy;
  DeleteInC* c_remove;
  typename Class::Copy_attr_function* copy;
  typename Class::Delete_attr_function* remove;
  void* extra_state;
};

using CommKeyval = Keyval<MPI_Comm, MPI::Comm>;
using TypeKeyval = Keyval<MPI_Datatype, MPI::Datatype>;
using WinKeyval = Keyval<MPI_Win, MPI::Win>;

template <typename Kind, typename Create>
int CreateKeyval(Create create, const Kind& given, int* keyval) {
  auto* const kept = new Kind(given);
  const int code = create(Kind::Copy, Kind::Delete, keyval, kept);
  if (code != MPI_SUCCESS) {
    delete kept;
  }
  return code;
}

}  // namespace

#define FERRY_KEYVALS(Class, Kind)                                                              \
  int MPI::Class::do_create_keyval(                                                             \
      MPI_##Kind##_copy_attr_function* c_copy, MPI_##Kind##_delete_attr_function* c_remove,     \
      Copy_attr_function* copy, Delete_attr_function* remove, void* extra_state, int& keyval) { \
    return CreateKeyval<Kind##Keyval>(MPI_##Kind##_create_keyval,                               \
                                      {c_copy, c_remove, copy, remove, extra_state}, &keyval);  \
  }
FERRY_KEYVALS(Comm, Comm)
FERRY_KEYVALS(Datatype, Type)
FERRY_KEYVALS(Win, Win)
#undef FERRY_KEYVALS

extern "C" {

FERRY_SHOWN int ompi_mpi_cxx_comm_copy_attr_intercept(MPI_Comm comm, int keyval, void* state,
                                                      void* in, void* out, int* flag, MPI_Comm) {
  return CommKeyval::Copy(comm, keyval, state, in, out, flag);
}
FERRY_SHOWN int ompi_mpi_cxx_comm_delete_attr_intercept(MPI_Comm comm, int keyval, void* value,
                                                        void* state) {
  return CommKeyval::Delete(comm, keyval, value, state);
}
FERRY_SHOWN int ompi_mpi_cxx_type_copy_attr_intercept(MPI_Datatype type, int keyval, void* state,
                                                      void* in, void* out, int* flag) {
  return TypeKeyval::Copy(type, keyval, state, in, out, flag);
}
FERRY_SHOWN int ompi_mpi_cxx_type_delete_attr_intercept(MPI_Datatype type, int keyval, void* value,
                                                        void* state) {
  return TypeKeyval::Delete(type, keyval, value, state);
}
FERRY_SHOWN int ompi_mpi_cxx_win_copy_attr_intercept(MPI_Win win, int keyval, void* state, void* in,
                                                     void* out, int* flag) {
  return WinKeyval::Copy(win, keyval, state, in, out, flag);
}
FERRY_SHOWN int ompi_mpi_cxx_win_delete_attr_intercept(MPI_Win win, int keyval, void* value,
                                                       void* state) {
  return WinKeyval::Delete(win, keyval, value, state);
}

}  // extern "C"

// ---- Error handlers -----------------------------------------------------------------------------

namespace {

void CallHandler(Handled kind, void* handle, int* code, void (*function)()) {
  switch (kind) {
    case Handled::kCommunicator:
      CallWith(*static_cast<MPI_Comm*>(handle), [&](MPI::Comm& comm) {
        As<MPI::Comm::Errhandler_function>(function)(comm, code);
        return MPI_SUCCESS;
      });
      break;
    case Handled::kFile: {
      MPI::File file(*static_cast<MPI_File*>(handle));
      As<MPI::File::Errhandler_function>(function)(file, code);
      break;
    }
    case Handled::kWindow: {
      MPI::Win win(*static_cast<MPI_Win*>(handle));
      As<MPI::Win::Errhandler_function>(function)(win, code);
      break;
    }
    case Handled::kSession:  // C++ has none
      break;
  }
}

template <typename InC, typename Create, typename InCxx>
MPI::Errhandler CreateHandler(Create create, InCxx* function) {
  MPI_Errhandler made = MPI_ERRHANDLER_NULL;
  if (create(reinterpret_cast<InC*>(reinterpret_cast<void (*)()>(function)), &made) ==
      MPI_SUCCESS) {
    ferry_openmpi_set_handler_caller(made, CallHandler);
  }
  return MPI::Errhandler(made);
}

}  // namespace

#define FERRY_HANDLERS(Class)                                                                \
  MPI::Errhandler MPI::Class::Create_errhandler(Errhandler_function* function) {             \
    return CreateHandler<MPI_##Class##_errhandler_function>(MPI_##Class##_create_errhandler, \
                                                            function);                       \
  }
FERRY_HANDLERS(Comm)
FERRY_HANDLERS(File)
FERRY_HANDLERS(Win)
#undef FERRY_HANDLERS

// ---- Operations and generalised requests --------------------------------------------------------

extern "C" {

FERRY_SHOWN void ompi_mpi_cxx_op_intercept(void* in, void* inout, int* length,
                                           MPI_Datatype* datatype, void (*function)()) {
  As<MPI::Op::User_function>(function)(in, inout, *length, MPI::Datatype(*datatype));
}

FERRY_SHOWN int ompi_mpi_cxx_grequest_query_fn_intercept(void* state, MPI_Status* status) {
  const auto& own = *static_cast<const MPI::Grequest::Intercept_data_t*>(state);
  MPI::Status object(*status);
  const int code = own.query(own.extra_state, object);
  *status = *object.get();
  return code;
}

FERRY_SHOWN int ompi_mpi_cxx_grequest_free_fn_intercept(void* state) {
  const auto* const own = static_cast<const MPI::Grequest::Intercept_data_t*>(state);
  const int code = own->free(own->extra_state);
  delete own;
  return code;
}

FERRY_SHOWN int ompi_mpi_cxx_grequest_cancel_fn_intercept(void* state, int complete) {
  const auto& own = *static_cast<const MPI::Grequest::Intercept_data_t*>(state);
  return own.cancel(own.extra_state, complete != 0);
}

}  // extern "C"

void MPI::Op::Init(User_function* function, bool commute) {
  MPI_Op_create(
      reinterpret_cast<MPI_User_function*>(reinterpret_cast<void (*)()>(ompi_mpi_cxx_op_intercept)),
      commute ? 1 : 0, &handle_);
  ompi_op_set_cxx_callback(handle_, reinterpret_cast<void (*)()>(function));
}

// ---- Data representations of files --------------------------------------------------------------

#pragma GCC visibility push(default)
namespace MPI {

// MPI_Offset, as Open MPI's header has it in the names of functions.
using PlaceInFile = long long;  // NOLINT(google-runtime-int)
using ConvertInC = int(void*, MPI_Datatype, int, void*, PlaceInFile, void*);
using Convert = void(void*, Datatype&, int, void*, PlaceInFile, void*);
using FindExtent = void(const Datatype&, Aint&, void*);

}  // namespace MPI

namespace {

struct Datarep {
  static int Call(MPI::ConvertInC* in_c, MPI::Convert* in_cxx, void* memory, MPI_Datatype type,
                  int count, void* in_file, MPI_Offset place, void* extra_state) {
    if (in_c != nullptr) {
      return in_c(memory, type, count, in_file, place, extra_state);
    }
    MPI::Datatype object(type);
    in_cxx(memory, object, count, in_file, place, extra_state);
    return MPI_SUCCESS;
  }
  static int Read(void* memory, MPI_Datatype type, int count, void* in_file, MPI_Offset place,
                  void* self) {
    const auto& own = *static_cast<const Datarep*>(self);
    return Call(own.c_read, own.read, memory, type, count, in_file, place, own.extra_state);
  }
  static int Write(void* memory, MPI_Datatype type, int count, void* in_file, MPI_Offset place,
                   void* self) {
    const auto& own = *static_cast<const Datarep*>(self);
    return Call(own.c_write, own.write, memory, type, count, in_file, place, own.extra_state);
  }
  static int Extent(MPI_Datatype type, MPI_Aint* extent, void* self) {
    const auto& own = *static_cast<const Datarep*>(self);
    own.extent(MPI::Datatype(type), *extent, own.extra_state);
    return MPI_SUCCESS;
  }

  MPI::ConvertInC* c_read;
  MPI::Convert* read;
  MPI::ConvertInC* c_write;
  MPI::Convert* write;
  MPI::FindExtent* extent;
  void* extra_state;
};

// MPI_CONVERSION_FN_NULL is a null pointer of C.
void Register(const char* name, const Datarep& given) {
  auto* const kept = new Datarep(given);
  const bool reads = given.c_read != nullptr || given.read != nullptr;
  const bool writes = given.c_write != nullptr || given.write != nullptr;
  if (MPI_Register_datarep(name, reads ? Datarep::Read : nullptr, writes ? Datarep::Write : nullptr,
                           Datarep::Extent, kept) != MPI_SUCCESS) {
    delete kept;
  }
}

}  // namespace

#pragma GCC visibility push(default)
namespace MPI {

void Register_datarep(const char* name, Convert* read, Convert* write, FindExtent* extent,
                      void* extra_state) {
  Register(name, {nullptr, read, nullptr, write, extent, extra_state});
}
void Register_datarep(const char* name, ConvertInC* read, Convert* write, FindExtent* extent,
                      void* extra_state) {
  Register(name, {read, nullptr, nullptr, write, extent, extra_state});
}
void Register_datarep(const char* name, Convert* read, ConvertInC* write, FindExtent* extent,
                      void* extra_state) {
  Register(name, {nullptr, read, write, nullptr, extent, extra_state});
}
void Register_datarep(const char* name, ConvertInC* read, ConvertInC* write, FindExtent* extent,
                      void* extra_state) {
  Register(name, {read, nullptr, write, nullptr, extent, extra_state});
}

}  // namespace MPI

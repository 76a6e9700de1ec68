// Functions whose declaration does not say how their arguments become libmpi_abi's: arrays whose
// length stands in an object, texts that are longer there, memory that needs to be larger.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "mpi/foreign/convert.h"
#include "mpi/foreign/library.h"

namespace ferry::foreign {

// ---- The lengths of arrays ----------------------------------------------------------------------

int Peers(TheirHandle comm) {
  const auto ours = Ours<MPI_Comm>(comm);
  int count = 0;
  int is_inter = 0;
  if (ours == MPI_COMM_NULL || abi.Comm_test_inter(ours, &is_inter) != MPI_SUCCESS) {
    return 0;  // the call itself reports it
  }
  (is_inter != 0 ? abi.Comm_remote_size : abi.Comm_size)(ours, &count);
  return count;
}

Neighbours NeighboursOf(TheirHandle comm) {
  const auto ours = Ours<MPI_Comm>(comm);
  Neighbours found;
  int topology = MPI_UNDEFINED;
  if (ours == MPI_COMM_NULL || abi.Topo_test(ours, &topology) != MPI_SUCCESS) {
    return found;
  }
  int count = 0;
  if (topology == MPI_CART) {
    abi.Cartdim_get(ours, &count);
    found = {2 * count, 2 * count};
  } else if (topology == MPI_GRAPH) {
    int rank = 0;
    abi.Comm_rank(ours, &rank);
    abi.Graph_neighbors_count(ours, rank, &count);
    found = {count, count};
  } else if (topology == MPI_DIST_GRAPH) {
    int weighted = 0;
    abi.Dist_graph_neighbors_count(ours, &found.in, &found.out, &weighted);
  }
  return found;
}

bool IsRoot(TheirHandle comm, int root) {
  const auto ours = Ours<MPI_Comm>(comm);
  int rank = MPI_PROC_NULL;
  return ours != MPI_COMM_NULL && abi.Comm_rank(ours, &rank) == MPI_SUCCESS && rank == root;
}

// ---- Start, versions, names ---------------------------------------------------------------------

FERRY_FOREIGN(int, Init, (int* argc, char*** argv)) {
  LookForOthers();
  const int code = abi.Init(argc, argv);
  if (code == MPI_SUCCESS) {
    CheckLayout();
  }
  return TheirCode(code);
}

FERRY_FOREIGN(int, Init_thread, (int* argc, char*** argv, int required, int* provided)) {
  LookForOthers();
  const int code = abi.Init_thread(argc, argv, Ours(kThreads, required), provided);
  if (code == MPI_SUCCESS) {
    CheckLayout();
  }
  Translate(code, provided, [](int level) { return Theirs(kThreads, level); });
  return TheirCode(code);
}

FERRY_FOREIGN(int, Session_init, (TheirHandle info, TheirHandle errhandler, TheirHandle* session)) {
  LookForOthers();
  HandleOut<MPI_Session> ours(session);
  const int code =
      abi.Session_init(Ours<MPI_Info>(info), Ours<MPI_Errhandler>(errhandler), ours.get());
  if (code == MPI_SUCCESS) {
    CheckLayout();
  }
  ours.Give();
  return TheirCode(code);
}

FERRY_FOREIGN(int, Pcontrol, (const int level, ...)) { return TheirCode(abi.Pcontrol(level)); }

namespace {

// Copies a text to where the program has room for `room` bytes.
int Cut(int code, const char* ours, char* theirs, int room, int* length) {
  if (code == MPI_SUCCESS) {
    const size_t size = strnlen(ours, static_cast<size_t>(room) - 1);
    std::memcpy(theirs, ours, size);
    theirs[size] = '\0';
    if (length != nullptr) {
      *length = static_cast<int>(size);
    }
  }
  return TheirCode(code);
}

}  // namespace

FERRY_FOREIGN(int, Get_version, (int* version, int* subversion)) {
  const int code = abi.Get_version(version, subversion);
  if (code == MPI_SUCCESS) {
    *version = kTheirVersion;
    *subversion = kTheirSubversion;
  }
  return TheirCode(code);
}

// It has not the standard's interface.
FERRY_FOREIGN(int, Abi_get_version, (int* abi_major, int* abi_minor)) {
  const int code = abi.Abi_get_version(abi_major, abi_minor);
  if (code == MPI_SUCCESS) {
    *abi_major = -1;
    *abi_minor = -1;
  }
  return TheirCode(code);
}

// Programs look at how the text begins.
FERRY_FOREIGN(int, Get_library_version, (char* version, int* resultlen)) {
  char ours[MPI_MAX_LIBRARY_VERSION_STRING];
  if (version == nullptr || resultlen == nullptr) {
    return TheirCode(abi.Get_library_version(version, resultlen));
  }
  const int code = abi.Get_library_version(ours, resultlen);
  return Cut(code, (kBeforeVersion + std::string(ours) + kAfterVersion).c_str(), version,
             kTheirMaxLibraryVersionString, resultlen);
}

FERRY_FOREIGN(int, Get_processor_name, (char* name, int* resultlen)) {
  char ours[MPI_MAX_PROCESSOR_NAME];
  const int code = abi.Get_processor_name(name == nullptr ? nullptr : ours, resultlen);
  return Cut(code, ours, name, kTheirMaxProcessorName, resultlen);
}

FERRY_FOREIGN(int, Error_string, (int errorcode, char* string, int* resultlen)) {
  char ours[MPI_MAX_ERROR_STRING];
  const int code =
      abi.Error_string(OurCode(errorcode), string == nullptr ? nullptr : ours, resultlen);
  return Cut(code, ours, string, kTheirMaxErrorString, resultlen);
}

#define FERRY_NAMES(Kind, name)                                                           \
  FERRY_FOREIGN(int, name##_get_name, (TheirHandle object, char* text, int* resultlen)) { \
    char ours[MPI_MAX_OBJECT_NAME];                                                       \
    const int code = abi.name##_get_name(Ours<MPI_##Kind>(object),                        \
                                         text == nullptr ? nullptr : ours, resultlen);    \
    return Cut(code, ours, text, kTheirMaxObjectName, resultlen);                         \
  }

FERRY_NAMES(Comm, Comm)
FERRY_NAMES(Datatype, Type)
FERRY_NAMES(Win, Win)

FERRY_FOREIGN(int, Info_get_nthkey, (TheirHandle info, int n, char* key)) {
  char ours[MPI_MAX_INFO_KEY];
  const int code = abi.Info_get_nthkey(Ours<MPI_Info>(info), n, key == nullptr ? nullptr : ours);
  return Cut(code, ours, key, kTheirMaxInfoKey, nullptr);
}

FERRY_FOREIGN(int, Open_port, (TheirHandle info, char* port_name)) {
  char ours[MPI_MAX_PORT_NAME];
  const int code = abi.Open_port(Ours<MPI_Info>(info), port_name == nullptr ? nullptr : ours);
  return Cut(code, ours, port_name, kTheirMaxPortName, nullptr);
}

FERRY_FOREIGN(int, Lookup_name, (const char* service_name, TheirHandle info, char* port_name)) {
  char ours[MPI_MAX_PORT_NAME];
  const int code =
      abi.Lookup_name(service_name, Ours<MPI_Info>(info), port_name == nullptr ? nullptr : ours);
  return Cut(code, ours, port_name, kTheirMaxPortName, nullptr);
}

// ---- Ranks of groups ----------------------------------------------------------------------------

FERRY_FOREIGN(int, Group_translate_ranks,
              (TheirHandle group1, int n, const int ranks1[], TheirHandle group2, int ranks2[])) {
  const Elements<int> ours(ranks1, n);
  for (int64_t i = 0; i < ours.count(); ++i) {
    ours.get()[i] = OurRank(ranks1[i]);
  }
  const int code = abi.Group_translate_ranks(Ours<MPI_Group>(group1), n, ours.get(),
                                             Ours<MPI_Group>(group2), ranks2);
  for (int i = 0; code == MPI_SUCCESS && i < n; ++i) {
    ranks2[i] = TheirRank(ranks2[i]);
  }
  return TheirCode(code);
}

// ---- Buffers for buffered sends -----------------------------------------------------------------
//
// A program makes its buffer as large as its messages and MPI_BSEND_OVERHEAD for each of them,
// which is smaller in their interface. So Ferry gets memory of this library's, with room for the
// messages of such a buffer; what is not used costs nothing.

namespace {

struct Attached {
  void* theirs;
  int64_t size;
  void* ours;
  size_t our_size;
};

// By owner: the kind of the handle, and the handle; of the process: 0.
using Owner = std::pair<char, TheirHandle>;
constexpr Owner kProcess = {'p', TheirHandle{}};

std::mutex mutex;  // guards what follows
std::map<Owner, Attached>& attached = *new std::map<Owner, Attached>();

// attach(buffer, size) is libmpi_abi's call.
template <typename Attach>
int AttachLarger(Owner owner, void* buffer, int64_t size, Attach attach) {
  if (buffer == nullptr || size < 0) {
    return TheirCode(attach(buffer, MPI_Count{size}));
  }
  if (reinterpret_cast<intptr_t>(buffer) == kTheirBufferAutomatic) {
    return TheirCode(attach(MPI_BUFFER_AUTOMATIC, MPI_Count{size}));
  }
  const auto our_size =
      static_cast<size_t>(size + (size / kTheirBsendOverhead + 1) * MPI_BSEND_OVERHEAD);
  void* const ours = mmap(nullptr, our_size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ours == MAP_FAILED) {
    return Refuse("MPI_Buffer_attach", MPI_ERR_NO_MEM, "no memory for a buffer");
  }
  const int code = attach(ours, static_cast<MPI_Count>(our_size));
  if (code != MPI_SUCCESS) {
    munmap(ours, our_size);
    return TheirCode(code);
  }
  const std::lock_guard lock(mutex);
  attached[owner] = {buffer, size, ours, our_size};
  return MPI_SUCCESS;
}

// detach(address, size) is libmpi_abi's call.
template <typename Size, typename Detach>
int DetachLarger(Owner owner, void* address, Size* size, Detach detach) {
  void* ours = nullptr;
  MPI_Count our_size = 0;
  const int code =
      detach(address == nullptr ? nullptr : &ours, size == nullptr ? nullptr : &our_size);
  if (code != MPI_SUCCESS) {
    return TheirCode(code);
  }
  const std::lock_guard lock(mutex);
  const auto found = attached.find(owner);
  if (found == attached.end()) {  // there was none: null, and 0 bytes; or MPI's own
    if (ours == MPI_BUFFER_AUTOMATIC) {
      ours = reinterpret_cast<void*>(intptr_t{kTheirBufferAutomatic});
    }
    std::memcpy(address, &ours, sizeof(ours));
    *size = static_cast<Size>(our_size);
    return MPI_SUCCESS;
  }
  std::memcpy(address, &found->second.theirs, sizeof(void*));
  *size = static_cast<Size>(found->second.size);
  munmap(found->second.ours, found->second.our_size);
  attached.erase(found);
  return MPI_SUCCESS;
}

}  // namespace

#define FERRY_BUFFERS(suffix, Size)                                            \
  FERRY_FOREIGN(int, Buffer_attach##suffix, (void* buffer, Size size)) {       \
    return AttachLarger(kProcess, buffer, size, abi.Buffer_attach_c);          \
  }                                                                            \
  FERRY_FOREIGN(int, Buffer_detach##suffix, (void* buffer_addr, Size* size)) { \
    return DetachLarger(kProcess, buffer_addr, size, abi.Buffer_detach_c);     \
  }                                                                            \
  FERRY_BUFFERS_OF(Comm, comm, suffix, Size)                                   \
  FERRY_BUFFERS_OF(Session, session, suffix, Size)
#define FERRY_BUFFERS_OF(Kind, owner, suffix, Size)                                                \
  FERRY_FOREIGN(int, Kind##_attach_buffer##suffix, (TheirHandle owner, void* buffer, Size size)) { \
    return AttachLarger({#Kind[0], owner}, buffer, size, [owner](void* ours, MPI_Count bytes) {    \
      return abi.Kind##_attach_buffer_c(Ours<MPI_##Kind>(owner), ours, bytes);                     \
    });                                                                                            \
  }                                                                                                \
  FERRY_FOREIGN(int, Kind##_detach_buffer##suffix,                                                 \
                (TheirHandle owner, void* buffer_addr, Size* size)) {                              \
    return DetachLarger(                                                                           \
        {#Kind[0], owner}, buffer_addr, size, [owner](void* address, MPI_Count* bytes) {           \
          return abi.Kind##_detach_buffer_c(Ours<MPI_##Kind>(owner), address, bytes);              \
        });                                                                                        \
  }

FERRY_BUFFERS(, int)
FERRY_BUFFERS(_c, MPI_Count)

// ---- Datatypes ----------------------------------------------------------------------------------

namespace {

template <typename Count, typename Displacement, typename Create>
int CreateStruct(Count count, const Count lengths[], const Displacement displacements[],
                 const TheirHandle types[], TheirHandle* newtype, Create create) {
  HandleOut<MPI_Datatype> made(newtype);
  const auto is_mark = [](TheirHandle type) { return IsLowerBound(type) || IsUpperBound(type); };
  if (lengths == nullptr || displacements == nullptr || types == nullptr || count <= 0 ||
      std::none_of(types, types + count, is_mark)) {
    const HandlesIn<MPI_Datatype> ours(types, count);
    const int code = create(count, lengths, displacements, ours.get(), made.get());
    made.Give();
    return TheirCode(code);
  }
  std::vector<Count> our_lengths;
  std::vector<Displacement> our_displacements;
  std::vector<MPI_Datatype> ours;
  bool has_lb = false;
  bool has_ub = false;
  MPI_Count lb = 0;
  MPI_Count ub = 0;
  for (Count i = 0; i < count; ++i) {
    if (!is_mark(types[i])) {
      our_lengths.push_back(lengths[i]);
      our_displacements.push_back(displacements[i]);
      ours.push_back(Ours<MPI_Datatype>(types[i]));
    } else if (IsLowerBound(types[i])) {
      lb = has_lb ? std::min<MPI_Count>(lb, displacements[i]) : displacements[i];
      has_lb = true;
    } else {
      ub = has_ub ? std::max<MPI_Count>(ub, displacements[i]) : displacements[i];
      has_ub = true;
    }
  }
  MPI_Datatype plain = MPI_DATATYPE_NULL;
  int code = create(static_cast<Count>(ours.size()), our_lengths.data(), our_displacements.data(),
                    ours.data(), &plain);
  MPI_Count natural_lb = 0;
  MPI_Count extent = 0;
  if (code == MPI_SUCCESS) {
    code = abi.Type_get_extent_c(plain, &natural_lb, &extent);
  }
  if (code == MPI_SUCCESS) {
    lb = has_lb ? lb : natural_lb;
    ub = has_ub ? ub : natural_lb + extent;
    code = abi.Type_create_resized_c(plain, lb, ub - lb, made.get());
  }
  if (plain != MPI_DATATYPE_NULL) {
    abi.Type_free(&plain);
  }
  made.Give();
  return TheirCode(code);
}

template <typename Count, typename Create>
int CreateDarray(int size, int rank, int ndims, const Count gsizes[], const int distribs[],
                 const int dargs[], const int psizes[], int order, TheirHandle oldtype,
                 TheirHandle* newtype, Create create) {
  const Elements<int> our_distribs(distribs, ndims);
  const Elements<int> our_dargs(dargs, ndims);
  for (int i = 0; i < our_distribs.count() && i < our_dargs.count(); ++i) {
    our_distribs.get()[i] = Ours(kDistributions, distribs[i]);
    our_dargs.get()[i] = dargs[i] == kTheirDistributeDfltDarg ? MPI_DISTRIBUTE_DFLT_DARG : dargs[i];
    if (dargs[i] == MPI_DISTRIBUTE_DFLT_DARG && our_distribs.get()[i] != MPI_DISTRIBUTE_NONE) {
      return Refuse("MPI_Type_create_darray", MPI_ERR_ARG,
                    "blocks of 19 elements: this number means the default block in the standard's "
                    "interface");
    }
  }
  HandleOut<MPI_Datatype> made(newtype);
  const int code = create(size, rank, ndims, gsizes, our_distribs.get(), our_dargs.get(), psizes,
                          Ours(kOrders, order), Ours<MPI_Datatype>(oldtype), made.get());
  made.Give();
  return TheirCode(code);
}

// Translates constants among the numbers that MPI_Type_get_contents has given. `has_counts`: the
// sizes of arrays stand among the large counts.
void TranslateContents(int combiner, bool has_counts, int* integers) {
  if (combiner == MPI_COMBINER_SUBARRAY) {
    int& order = integers[has_counts ? 1 : 1 + 3 * integers[0]];
    order = Theirs(kOrders, order);
  } else if (combiner == MPI_COMBINER_DARRAY) {
    const int dimensions = integers[2];
    int* const distribs = integers + 3 + (has_counts ? 0 : dimensions);
    int* const dargs = distribs + dimensions;
    for (int i = 0; i < dimensions; ++i) {
      distribs[i] = Theirs(kDistributions, distribs[i]);
      dargs[i] = dargs[i] == MPI_DISTRIBUTE_DFLT_DARG ? kTheirDistributeDfltDarg : dargs[i];
    }
    int& order = dargs[2 * dimensions];
    order = Theirs(kOrders, order);
  }
}

// get(types) is libmpi_abi's call.
template <typename Get>
int GetContents(TheirHandle datatype, int64_t max_datatypes, int integers[], TheirHandle types[],
                Get get) {
  const Elements<MPI_Datatype> ours(types, max_datatypes);
  const int code = get(ours.get());
  MPI_Count of_integers = 0;
  MPI_Count of_addresses = 0;
  MPI_Count of_counts = 0;
  MPI_Count of_types = 0;
  int combiner = 0;
  if (code == MPI_SUCCESS &&
      abi.Type_get_envelope_c(Ours<MPI_Datatype>(datatype), &of_integers, &of_addresses, &of_counts,
                              &of_types, &combiner) == MPI_SUCCESS) {
    for (MPI_Count i = 0; i < of_types; ++i) {
      types[i] = Theirs(ours.get()[i]);
    }
    TranslateContents(combiner, of_counts != 0, integers);
  }
  return TheirCode(code);
}

}  // namespace

FERRY_FOREIGN(int, Type_create_struct,
              (int count, const int array_of_blocklengths[],
               const MPI_Aint array_of_displacements[], const TheirHandle array_of_types[],
               TheirHandle* newtype)) {
  return CreateStruct(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype,
                      abi.Type_create_struct);
}

FERRY_FOREIGN(int, Type_create_struct_c,
              (MPI_Count count, const MPI_Count array_of_blocklengths[],
               const MPI_Count array_of_displacements[], const TheirHandle array_of_types[],
               TheirHandle* newtype)) {
  return CreateStruct(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype,
                      abi.Type_create_struct_c);
}

FERRY_FOREIGN(int, Type_create_darray,
              (int size, int rank, int ndims, const int gsizes[], const int distribs[],
               const int dargs[], const int psizes[], int order, TheirHandle oldtype,
               TheirHandle* newtype)) {
  return CreateDarray(size, rank, ndims, gsizes, distribs, dargs, psizes, order, oldtype, newtype,
                      abi.Type_create_darray);
}

FERRY_FOREIGN(int, Type_create_darray_c,
              (int size, int rank, int ndims, const MPI_Count gsizes[], const int distribs[],
               const int dargs[], const int psizes[], int order, TheirHandle oldtype,
               TheirHandle* newtype)) {
  return CreateDarray(size, rank, ndims, gsizes, distribs, dargs, psizes, order, oldtype, newtype,
                      abi.Type_create_darray_c);
}

FERRY_FOREIGN(int, Type_get_contents,
              (TheirHandle datatype, int max_integers, int max_addresses, int max_datatypes,
               int integers[], MPI_Aint addresses[], TheirHandle types[])) {
  return GetContents(datatype, max_datatypes, integers, types, [&](MPI_Datatype* ours) {
    return abi.Type_get_contents(Ours<MPI_Datatype>(datatype), max_integers, max_addresses,
                                 max_datatypes, integers, addresses, ours);
  });
}

FERRY_FOREIGN(int, Type_get_contents_c,
              (TheirHandle datatype, MPI_Count max_integers, MPI_Count max_addresses,
               MPI_Count max_large_counts, MPI_Count max_datatypes, int integers[],
               MPI_Aint addresses[], MPI_Count large_counts[], TheirHandle types[])) {
  return GetContents(datatype, max_datatypes, integers, types, [&](MPI_Datatype* ours) {
    return abi.Type_get_contents_c(Ours<MPI_Datatype>(datatype), max_integers, max_addresses,
                                   max_large_counts, max_datatypes, integers, addresses,
                                   large_counts, ours);
  });
}

// ---- Extensions that the families share ---------------------------------------------------------

FERRY_EXTENSION(int, Query_cuda_support, (void)) { return HasMemoryKind("cuda") ? 1 : 0; }

}  // namespace ferry::foreign

// Procedures whose line of the table does not say how their arguments become C's: how many there
// are stands in an object, strings whose length is another argument, arguments of programs.
#include "mpi/fortran/by_hand.h"

#include <vector>

#include "mpi/fortran/types_of_peers.h"

namespace ferry::fortran {
namespace {

// ---- The arguments of programs ------------------------------------------------------------------

// Strings, and the array of their addresses that C takes, with a null at its end.
class Words {
 public:
  void Add(const char* text, size_t length) {
    words_.emplace_back(StrippedString(text, length).get());
  }
  // Arguments of one program: an array that ends with a blank element, of which every `step`-th is
  // one of this program's.
  void AddArguments(const char* text, size_t length, size_t step) {
    for (;; text += length * step) {
      const StrippedString word(text, length);
      if (*word.get() == '\0') {
        return;
      }
      words_.emplace_back(word.get());
    }
  }
  char** get() {
    pointers_.clear();
    for (std::string& word : words_) {
      pointers_.push_back(word.data());
    }
    pointers_.push_back(nullptr);
    return pointers_.data();
  }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

// Most arguments of the calls that start programs count at the root alone.
bool IsRoot(int comm, int root) {
  int rank = MPI_PROC_NULL;
  return !IsNull(comm) && PMPI_Comm_rank(HandleOf<MPI_Comm>(comm), &rank) == MPI_SUCCESS &&
         rank == root;
}

int* ErrorCodes(int* codes) { return IsErrcodesIgnore(codes) ? MPI_ERRCODES_IGNORE : codes; }

}  // namespace

// ---- MPI_Alltoallw and its kin ------------------------------------------------------------------

#define FERRY_PARAMETERS(Count, Displacement)                                             \
  void *sendbuf, Count *sendcounts, Displacement *sdispls, int *sendtypes, void *recvbuf, \
      Count *recvcounts, Displacement *rdispls, int *recvtypes, int *comm
#define FERRY_ARGUMENTS \
  sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm

#define FERRY_WITH_TYPES(Blocking, Nonblocking, Persistent, CountsOf, Count, Displacement)   \
  void Blocking(decltype(&MPI_##Blocking) call, FERRY_PARAMETERS(Count, Displacement),       \
                int* ierror) {                                                               \
    Give(ierror, WithTypes(call, CountsOf(*comm), FERRY_ARGUMENTS));                         \
  }                                                                                          \
  void Nonblocking(decltype(&MPI_##Nonblocking) call, FERRY_PARAMETERS(Count, Displacement), \
                   int* request, int* ierror) {                                              \
    MPI_Request made = MPI_REQUEST_NULL;                                                     \
    const int code = WithTypes(call, CountsOf(*comm), FERRY_ARGUMENTS, &made);               \
    *request = NumberOf(made);                                                               \
    Give(ierror, code);                                                                      \
  }                                                                                          \
  void Persistent(decltype(&MPI_##Persistent) call, FERRY_PARAMETERS(Count, Displacement),   \
                  int* info, int* request, int* ierror) {                                    \
    MPI_Request made = MPI_REQUEST_NULL;                                                     \
    const int code =                                                                         \
        WithTypes(call, CountsOf(*comm), FERRY_ARGUMENTS, HandleOf<MPI_Info>(*info), &made); \
    *request = NumberOf(made);                                                               \
    Give(ierror, code);                                                                      \
  }

FERRY_WITH_TYPES(Alltoallw, Ialltoallw, Alltoallw_init, PeersOf, int, int)
FERRY_WITH_TYPES(Alltoallw_c, Ialltoallw_c, Alltoallw_init_c, PeersOf, MPI_Count, MPI_Aint)
FERRY_WITH_TYPES(Neighbor_alltoallw, Ineighbor_alltoallw, Neighbor_alltoallw_init, NeighboursOf,
                 int, MPI_Aint)
FERRY_WITH_TYPES(Neighbor_alltoallw_c, Ineighbor_alltoallw_c, Neighbor_alltoallw_init_c,
                 NeighboursOf, MPI_Count, MPI_Aint)

// ---- Arrays whose length an object knows --------------------------------------------------------

void Cart_get(decltype(&MPI_Cart_get) call, int* comm, int* maxdims, int* dims, int* periods,
              int* coords, int* ierror) {
  const int code = call(HandleOf<MPI_Comm>(*comm), *maxdims, dims, periods, coords);
  int count = 0;
  if (code == MPI_SUCCESS) {
    PMPI_Cartdim_get(HandleOf<MPI_Comm>(*comm), &count);
  }
  for (int i = 0; i < std::min(count, *maxdims); ++i) {
    periods[i] = Logical(periods[i]);
  }
  Give(ierror, code);
}

void Cart_sub(decltype(&MPI_Cart_sub) call, int* comm, int* remain_dims, int* newcomm,
              int* ierror) {
  int count = 0;
  int topology = MPI_UNDEFINED;
  if (!IsNull(*comm) && PMPI_Topo_test(HandleOf<MPI_Comm>(*comm), &topology) == MPI_SUCCESS &&
      topology == MPI_CART) {
    PMPI_Cartdim_get(HandleOf<MPI_Comm>(*comm), &count);
  }
  Logicals remain(remain_dims, count);
  MPI_Comm made = MPI_COMM_NULL;
  const int code = call(HandleOf<MPI_Comm>(*comm), remain.get(), &made);
  *newcomm = NumberOf(made);
  Give(ierror, code);
}

namespace {

// As many datatypes as there are; the rest of the program's array stays as it is.
void StoreTypes(MPI_Datatype type, Elements<MPI_Datatype>* types, int* array_of_datatypes) {
  MPI_Count integers = 0;
  MPI_Count addresses = 0;
  MPI_Count large_counts = 0;
  MPI_Count datatypes = 0;
  int combiner = 0;
  PMPI_Type_get_envelope_c(type, &integers, &addresses, &large_counts, &datatypes, &combiner);
  for (MPI_Count i = 0; i < std::min(datatypes, types->count()); ++i) {
    array_of_datatypes[i] = NumberOf(types->get()[i]);
  }
}

}  // namespace

void Type_get_contents(decltype(&MPI_Type_get_contents) call, int* datatype, int* max_integers,
                       int* max_addresses, int* max_datatypes, int* array_of_integers,
                       MPI_Aint* array_of_addresses, int* array_of_datatypes, int* ierror) {
  const MPI_Datatype type = HandleOf<MPI_Datatype>(*datatype);
  Elements<MPI_Datatype> types(*max_datatypes);
  const int code = call(type, *max_integers, *max_addresses, *max_datatypes, array_of_integers,
                        array_of_addresses, types.get());
  if (code == MPI_SUCCESS) {
    StoreTypes(type, &types, array_of_datatypes);
  }
  Give(ierror, code);
}

void Type_get_contents_c(decltype(&MPI_Type_get_contents_c) call, int* datatype,
                         MPI_Count* max_integers, MPI_Count* max_addresses,
                         MPI_Count* max_large_counts, MPI_Count* max_datatypes,
                         int* array_of_integers, MPI_Aint* array_of_addresses,
                         MPI_Count* array_of_large_counts, int* array_of_datatypes, int* ierror) {
  const MPI_Datatype type = HandleOf<MPI_Datatype>(*datatype);
  Elements<MPI_Datatype> types(*max_datatypes);
  const int code = call(type, *max_integers, *max_addresses, *max_large_counts, *max_datatypes,
                        array_of_integers, array_of_addresses, array_of_large_counts, types.get());
  if (code == MPI_SUCCESS) {
    StoreTypes(type, &types, array_of_datatypes);
  }
  Give(ierror, code);
}

// ---- Strings with their lengths -----------------------------------------------------------------

void Info_get(decltype(&MPI_Info_get) call, int* info, char* key, int* valuelen, char* value,
              int* flag, int* ierror, size_t key_length, size_t value_length) {
  const StrippedString c_key(key, key_length);
  Elements<char> text(std::max(*valuelen, 0) + 1);
  text.get()[0] = '\0';
  int is_set = 0;
  const int code = call(HandleOf<MPI_Info>(*info), c_key.get(), *valuelen, text.get(), &is_set);
  if (code == MPI_SUCCESS && is_set != 0) {
    Fill(value, value_length, text.get());
  }
  *flag = Logical(is_set);
  Give(ierror, code);
}

// C's length is one more, for the zero at its end, and 0 asks for the length in both languages.
void Info_get_string(decltype(&MPI_Info_get_string) call, int* info, char* key, int* buflen,
                     char* value, int* flag, int* ierror, size_t key_length, size_t value_length) {
  const StrippedString c_key(key, key_length);
  const int room = *buflen;
  int length = room > 0 ? room + 1 : room;
  Elements<char> text(std::max(length, 0));
  int is_set = 0;
  const int code = call(HandleOf<MPI_Info>(*info), c_key.get(), &length, text.get(), &is_set);
  if (code == MPI_SUCCESS && is_set != 0) {
    *buflen = std::max(length - 1, 0);
    if (room > 0) {
      Fill(value, value_length, text.get());
    }
  }
  *flag = Logical(is_set);
  Give(ierror, code);
}

void Session_get_nth_pset(decltype(&MPI_Session_get_nth_pset) call, int* session, int* info, int* n,
                          int* pset_len, char* pset_name, int* ierror, size_t pset_name_length) {
  const int room = *pset_len;
  int length = room > 0 ? room + 1 : room;
  Elements<char> text(std::max(length, 0));
  const int code =
      call(HandleOf<MPI_Session>(*session), HandleOf<MPI_Info>(*info), *n, &length, text.get());
  if (code == MPI_SUCCESS) {
    *pset_len = std::max(length - 1, 0);
    if (room > 0) {
      Fill(pset_name, pset_name_length, text.get());
    }
  }
  Give(ierror, code);
}

// ---- Others -------------------------------------------------------------------------------------

void Pcontrol(decltype(&MPI_Pcontrol) call, int* level) { call(*level); }

void Comm_spawn(decltype(&MPI_Comm_spawn) call, char* command, char* argv, int* maxprocs, int* info,
                int* root, int* comm, int* intercomm, int* array_of_errcodes, int* ierror,
                size_t command_length, size_t argv_length) {
  const bool is_root = IsRoot(*comm, *root);
  const StrippedString program(command, is_root ? command_length : 0);
  Words arguments;
  const bool with_arguments = is_root && !IsArgvNull(argv);
  if (with_arguments) {
    arguments.AddArguments(argv, argv_length, 1);
  }
  MPI_Comm made = MPI_COMM_NULL;
  const int code =
      call(program.get(), with_arguments ? arguments.get() : MPI_ARGV_NULL, is_root ? *maxprocs : 0,
           is_root ? HandleOf<MPI_Info>(*info) : MPI_INFO_NULL, *root, HandleOf<MPI_Comm>(*comm),
           &made, ErrorCodes(array_of_errcodes));
  *intercomm = NumberOf(made);
  Give(ierror, code);
}

void Comm_spawn_multiple(decltype(&MPI_Comm_spawn_multiple) call, int* count,
                         char* array_of_commands, char* array_of_argv, int* array_of_maxprocs,
                         int* array_of_info, int* root, int* comm, int* intercomm,
                         int* array_of_errcodes, int* ierror, size_t array_of_commands_length,
                         size_t array_of_argv_length) {
  const int programs = IsRoot(*comm, *root) ? std::max(*count, 0) : 0;
  const bool with_arguments = programs > 0 && !IsArgvsNull(array_of_argv);
  Words commands;
  std::vector<Words> arguments(static_cast<size_t>(programs));
  std::vector<char**> argument_arrays;
  for (int i = 0; i < programs; ++i) {
    const auto at = static_cast<size_t>(i);
    commands.Add(array_of_commands + at * array_of_commands_length, array_of_commands_length);
    if (with_arguments) {
      arguments[at].AddArguments(array_of_argv + at * array_of_argv_length, array_of_argv_length,
                                 static_cast<size_t>(programs));
      argument_arrays.push_back(arguments[at].get());
    }
  }
  Handles<MPI_Info> infos(array_of_info, programs);
  MPI_Comm made = MPI_COMM_NULL;
  const int code =
      call(programs, commands.get(), with_arguments ? argument_arrays.data() : MPI_ARGVS_NULL,
           array_of_maxprocs, infos.get(), *root, HandleOf<MPI_Comm>(*comm), &made,
           ErrorCodes(array_of_errcodes));
  *intercomm = NumberOf(made);
  Give(ierror, code);
}

}  // namespace ferry::fortran

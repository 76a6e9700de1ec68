// Procedures of Fortran that MPI calls: operations, error handlers, generalised requests, data
// representations (MPI 5.0, sections 6.9.5, 9.3, 13.2 and 14.5.3). All their arguments are
// addresses, and handles are integers.
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "mpi/fortran/by_hand.h"
#include "mpi/fortran/predefined.h"

namespace ferry::fortran {
namespace {

// ---- Callbacks that MPI hands nothing of ours ---------------------------------------------------
//
// Operations and error handlers have no extra state: nothing but the address of the C function says
// which procedure of Fortran is meant. So there are C functions beforehand, each for one procedure
// of the program, which keeps it for good: an operation may be freed while MPI still calls it.

constexpr size_t kMostProcedures = 256;  // of a program, and of one kind

// Gives each procedure the C function that calls it: `Caller<i>` calls procedures[i].
template <typename Kind>
class Callers {
 public:
  // Null: the program has passed kMostProcedures others.
  static typename Kind::CFunction* For(Function* procedure) {
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    for (size_t i = 0; i < kMostProcedures; ++i) {
      Function* const known = procedures[i].load(std::memory_order_relaxed);
      if (known == nullptr) {
        procedures[i].store(procedure, std::memory_order_release);  // Pairs with Procedure.
      }
      if (known == nullptr || known == procedure) {
        return kCallers[i];
      }
    }
    return nullptr;
  }
  static Function* Procedure(size_t i) { return procedures[i].load(std::memory_order_acquire); }

 private:
  template <size_t... i>
  static constexpr std::array<typename Kind::CFunction*, kMostProcedures> Table(
      std::index_sequence<i...>) {
    return {Kind::template Caller<i>...};
  }
  static constexpr std::array<typename Kind::CFunction*, kMostProcedures> kCallers =
      Table(std::make_index_sequence<kMostProcedures>());
  static inline std::array<std::atomic<Function*>, kMostProcedures> procedures{};
};

struct Operation {
  using CFunction = MPI_User_function;
  template <size_t i>
  static void Caller(void* in, void* inout, int* length, MPI_Datatype* datatype) {
    int type = NumberOf(*datatype);
    auto* const procedure =
        reinterpret_cast<void (*)(void*, void*, int*, int*)>(Callers<Operation>::Procedure(i));
    procedure(in, inout, length, &type);
  }
};

template <typename Handle>
struct ErrorHandler {
  using CFunction = void(Handle*, int*, ...);
  template <size_t i>
  static void Caller(Handle* object, int* code, ...) {
    int number = NumberOf(*object);
    auto* const procedure =
        reinterpret_cast<void (*)(int*, int*)>(Callers<ErrorHandler>::Procedure(i));
    procedure(&number, code);
  }
};

// A call that cannot even be made fails as the calls of MPI_COMM_SELF do.
int FailForMemory() {
  PMPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_NO_MEM);
  return MPI_ERR_NO_MEM;
}

template <typename Handle>
void CreateHandler(int (*call)(void (*)(Handle*, int*, ...), MPI_Errhandler*), Function* procedure,
                   int* errhandler, int* ierror) {
  MPI_Errhandler made = MPI_ERRHANDLER_NULL;
  auto* const function = Callers<ErrorHandler<Handle>>::For(procedure);
  const int code = function == nullptr ? FailForMemory() : call(function, &made);
  *errhandler = NumberOf(made);
  Give(ierror, code);
}

// ---- Generalised requests -----------------------------------------------------------------------

struct Grequest {
  void (*query)(MPI_Aint*, int*, int*);
  void (*free)(MPI_Aint*, int*);
  void (*cancel)(MPI_Aint*, int*, int*);
  MPI_Aint extra_state;
};

int Query(void* extra_state, MPI_Status* status) {
  auto& request = *static_cast<Grequest*>(extra_state);
  int code = MPI_SUCCESS;
  request.query(&request.extra_state, reinterpret_cast<int*>(status), &code);
  return code;
}

int Free(void* extra_state) {
  auto* const request = static_cast<Grequest*>(extra_state);
  int code = MPI_SUCCESS;
  request->free(&request->extra_state, &code);
  delete request;
  return code;
}

int Cancel(void* extra_state, int complete) {
  auto& request = *static_cast<Grequest*>(extra_state);
  int is_complete = Logical(complete);
  int code = MPI_SUCCESS;
  request.cancel(&request.extra_state, &is_complete, &code);
  return code;
}

// ---- Data representations: they last as long as the process -------------------------------------

struct Datarep {
  using Conversion = void(void*, int*, int*, void*, MPI_Offset*, MPI_Aint*, int*);
  Conversion* read;
  Conversion* write;
  void (*extent)(int*, MPI_Aint*, MPI_Aint*, int*);
  MPI_Aint extra_state;
};

template <Datarep::Conversion* Datarep::*which>
int Convert(void* userbuf, MPI_Datatype datatype, int count, void* filebuf, MPI_Offset position,
            void* extra_state) {
  auto& datarep = *static_cast<Datarep*>(extra_state);
  int type = NumberOf(datatype);
  int code = MPI_SUCCESS;
  (datarep.*which)(userbuf, &type, &count, filebuf, &position, &datarep.extra_state, &code);
  return code;
}

int Extent(MPI_Datatype datatype, MPI_Aint* extent, void* extra_state) {
  auto& datarep = *static_cast<Datarep*>(extra_state);
  int type = NumberOf(datatype);
  int code = MPI_SUCCESS;
  datarep.extent(&type, extent, &datarep.extra_state, &code);
  return code;
}

bool IsNull(Function* conversion) {
  return conversion == reinterpret_cast<Function*>(mpi_conversion_fn_null_);
}

}  // namespace

void Op_create(decltype(&MPI_Op_create) call, Function* user_fn, int* commute, int* op,
               int* ierror) {
  MPI_Op made = MPI_OP_NULL;
  auto* const function = Callers<Operation>::For(user_fn);
  const int code = function == nullptr ? FailForMemory() : call(function, IsTrue(*commute), &made);
  *op = NumberOf(made);
  Give(ierror, code);
}

#define FERRY_CREATE_HANDLER(Kind)                                                  \
  void Kind##_create_errhandler(decltype(&MPI_##Kind##_create_errhandler) call,     \
                                Function* function, int* errhandler, int* ierror) { \
    CreateHandler<MPI_##Kind>(call, function, errhandler, ierror);                  \
  }

FERRY_CREATE_HANDLER(Comm)
FERRY_CREATE_HANDLER(File)
FERRY_CREATE_HANDLER(Session)
FERRY_CREATE_HANDLER(Win)

void Grequest_start(decltype(&MPI_Grequest_start) call, Function* query_fn, Function* free_fn,
                    Function* cancel_fn, MPI_Aint* extra_state, int* request, int* ierror) {
  auto* const state =
      new Grequest{reinterpret_cast<void (*)(MPI_Aint*, int*, int*)>(query_fn),
                   reinterpret_cast<void (*)(MPI_Aint*, int*)>(free_fn),
                   reinterpret_cast<void (*)(MPI_Aint*, int*, int*)>(cancel_fn), *extra_state};
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = call(Query, Free, Cancel, state, &made);
  if (code != MPI_SUCCESS) {
    delete state;
  }
  *request = NumberOf(made);
  Give(ierror, code);
}

void Register_datarep(decltype(&MPI_Register_datarep) call, char* datarep,
                      Function* read_conversion_fn, Function* write_conversion_fn,
                      Function* dtype_file_extent_fn, MPI_Aint* extra_state, int* ierror,
                      size_t datarep_length) {
  const String name(datarep, datarep_length);
  auto* const state = new Datarep{
      reinterpret_cast<Datarep::Conversion*>(read_conversion_fn),
      reinterpret_cast<Datarep::Conversion*>(write_conversion_fn),
      reinterpret_cast<void (*)(int*, MPI_Aint*, MPI_Aint*, int*)>(dtype_file_extent_fn),
      *extra_state};
  const int code = call(
      name.get(), IsNull(read_conversion_fn) ? MPI_CONVERSION_FN_NULL : Convert<&Datarep::read>,
      IsNull(write_conversion_fn) ? MPI_CONVERSION_FN_NULL : Convert<&Datarep::write>, Extent,
      state);
  if (code != MPI_SUCCESS) {
    delete state;
  }
  Give(ierror, code);
}

}  // namespace ferry::fortran

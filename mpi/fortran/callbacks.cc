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

// Count: MPI_Count in those of large counts.
template <typename Count>
struct Operation {
  using CFunction = void(void*, void*, Count*, MPI_Datatype*);
  template <size_t i>
  static void Caller(void* in, void* inout, Count* length, MPI_Datatype* datatype) {
    int type = NumberOf(*datatype);
    auto* const procedure =
        reinterpret_cast<void (*)(void*, void*, Count*, int*)>(Callers<Operation>::Procedure(i));
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

// The error code of a procedure more than there may be, of the class MPI_ERR_NO_MEM.
int TooManyProcedures() {
  int code = MPI_ERR_NO_MEM;
  if (PMPI_Add_error_code(MPI_ERR_NO_MEM, &code) != MPI_SUCCESS) {
    return MPI_ERR_NO_MEM;
  }
  PMPI_Add_error_string(
      code,
      "a program in Fortran has at most 256 procedures that are operations, and as "
      "many that are error handlers of one kind of object");
  return code;
}

// A call that cannot even be made fails as the calls of MPI_COMM_SELF do.
int FailForMemory() {
  static_assert(kMostProcedures == 256, "the message says so");
  static const int code = TooManyProcedures();
  PMPI_Comm_call_errhandler(MPI_COMM_SELF, code);
  return code;
}

template <typename Count>
void CreateOperation(int (*call)(void (*)(void*, void*, Count*, MPI_Datatype*), int, MPI_Op*),
                     Function* procedure, const int* commute, int* op, int* ierror) {
  MPI_Op made = MPI_OP_NULL;
  auto* const function = Callers<Operation<Count>>::For(procedure);
  const int code = function == nullptr ? FailForMemory() : call(function, IsTrue(*commute), &made);
  *op = NumberOf(made);
  Give(ierror, code);
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

// Count: MPI_Count in those of large counts.
template <typename Count>
struct Datarep {
  using Conversion = void(void*, int*, Count*, void*, MPI_Offset*, MPI_Aint*, int*);
  Conversion* read;
  Conversion* write;
  void (*extent)(int*, MPI_Aint*, MPI_Aint*, int*);
  MPI_Aint extra_state;
};

template <typename Count, typename Datarep<Count>::Conversion* Datarep<Count>::*which>
int Convert(void* userbuf, MPI_Datatype datatype, Count count, void* filebuf, MPI_Offset position,
            void* extra_state) {
  auto& datarep = *static_cast<Datarep<Count>*>(extra_state);
  int type = NumberOf(datatype);
  int code = MPI_SUCCESS;
  (datarep.*which)(userbuf, &type, &count, filebuf, &position, &datarep.extra_state, &code);
  return code;
}

template <typename Count>
int Extent(MPI_Datatype datatype, MPI_Aint* extent, void* extra_state) {
  auto& datarep = *static_cast<Datarep<Count>*>(extra_state);
  int type = NumberOf(datatype);
  int code = MPI_SUCCESS;
  datarep.extent(&type, extent, &datarep.extra_state, &code);
  return code;
}

bool IsNull(Function* conversion) {
  return conversion == reinterpret_cast<Function*>(mpi_conversion_fn_null_) ||
         conversion == reinterpret_cast<Function*>(mpi_conversion_fn_null_c_);
}

template <typename Count, typename Call>
void Register(Call* call, const char* datarep, size_t datarep_length, Function* read,
              Function* write, Function* extent, const MPI_Aint* extra_state, int* ierror) {
  using Made = Datarep<Count>;
  const String name(datarep, datarep_length);
  auto* const state =
      new Made{reinterpret_cast<typename Made::Conversion*>(read),
               reinterpret_cast<typename Made::Conversion*>(write),
               reinterpret_cast<void (*)(int*, MPI_Aint*, MPI_Aint*, int*)>(extent), *extra_state};
  // MPI_CONVERSION_FN_NULL is a null pointer in C.
  const int code =
      call(name.get(), IsNull(read) ? nullptr : Convert<Count, &Made::read>,
           IsNull(write) ? nullptr : Convert<Count, &Made::write>, Extent<Count>, state);
  if (code != MPI_SUCCESS) {
    delete state;
  }
  Give(ierror, code);
}

}  // namespace

void Op_create(decltype(&MPI_Op_create) call, Function* user_fn, int* commute, int* op,
               int* ierror) {
  CreateOperation<int>(call, user_fn, commute, op, ierror);
}

void Op_create_c(decltype(&MPI_Op_create_c) call, Function* user_fn, int* commute, int* op,
                 int* ierror) {
  CreateOperation<MPI_Count>(call, user_fn, commute, op, ierror);
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
  Register<int>(call, datarep, datarep_length, read_conversion_fn, write_conversion_fn,
                dtype_file_extent_fn, extra_state, ierror);
}

void Register_datarep_c(decltype(&MPI_Register_datarep_c) call, char* datarep,
                        Function* read_conversion_fn, Function* write_conversion_fn,
                        Function* dtype_file_extent_fn, MPI_Aint* extra_state, int* ierror,
                        size_t datarep_length) {
  Register<MPI_Count>(call, datarep, datarep_length, read_conversion_fn, write_conversion_fn,
                      dtype_file_extent_fn, extra_state, ierror);
}

}  // namespace ferry::fortran

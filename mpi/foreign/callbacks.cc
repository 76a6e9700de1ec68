// Functions of the program that MPI calls: operations, error handlers, attributes, generalised
// requests. They take the handles and codes of their interface.
#include "mpi/foreign/callbacks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

#include "mpi/foreign/library.h"

namespace ferry::foreign {

LastMade& LastOfThisThread() {
  static thread_local constinit LastMade last{};
  return last;
}

namespace {

// ---- Callbacks that MPI hands nothing of ours ---------------------------------------------------
//
// Operations and error handlers have no extra state: nothing but the address of the function that
// MPI calls says which function of the program is meant. So there are such functions beforehand,
// each for one function of the program, which keeps it for good: an operation may be freed while
// MPI still calls it.

constexpr size_t kMostFunctions = 256;  // of a program, and of one kind

// Gives each function the one that calls it: `Caller<i>` calls functions[i].
template <typename Kind>
class Callers {
 public:
  using Function = typename Kind::Theirs;

  // Null: the program has passed kMostFunctions others.
  static typename Kind::Ours* For(Function* function) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < kMostFunctions; ++i) {
      Function* const known = functions[i].load(std::memory_order_relaxed);
      if (known == nullptr) {
        functions[i].store(function, std::memory_order_release);  // Pairs with Get.
      }
      if (known == nullptr || known == function) {
        return kCallers[i];
      }
    }
    return nullptr;
  }
  static Function* Get(size_t i) { return functions[i].load(std::memory_order_acquire); }
  // The one that calls functions[i], if that is not C's.
  static OtherCaller& CallerOf(size_t i) { return callers[i]; }
  static OtherCaller* CallerOf(typename Kind::Ours* ours) {
    const auto* const place = std::find(kCallers.begin(), kCallers.end(), ours);
    return place == kCallers.end() ? nullptr : &callers[place - kCallers.begin()];
  }

 private:
  template <size_t... i>
  static constexpr std::array<typename Kind::Ours*, kMostFunctions> Table(
      std::index_sequence<i...>) {
    return {Kind::template Caller<i>...};
  }
  static constexpr std::array<typename Kind::Ours*, kMostFunctions> kCallers =
      Table(std::make_index_sequence<kMostFunctions>());
  static inline std::array<std::atomic<Function*>, kMostFunctions> functions{};
  static inline std::array<OtherCaller, kMostFunctions> callers{};
};

template <typename Kind>
void (*FunctionOf(size_t i))() {
  return reinterpret_cast<void (*)()>(Callers<Kind>::Get(i));
}

// The 256 functions of a kind differ in a number alone: what they do stands once.
template <typename Count>
struct Operation {
  using Ours = void(void*, void*, Count*, MPI_Datatype*);
  using Theirs = void(void*, void*, Count*, TheirHandle*);
  template <size_t i>
  static void Caller(void* in, void* inout, Count* length, MPI_Datatype* datatype) {
    Call(i, in, inout, length, *datatype);
  }

 private:
  __attribute__((noinline)) static void Call(size_t i, void* in, void* inout, Count* length,
                                             MPI_Datatype datatype) {
    TheirHandle type = foreign::Theirs(datatype);
    if (auto* const call = Callers<Operation>::CallerOf(i).load(std::memory_order_relaxed)) {
      reinterpret_cast<OperationCaller*>(call)(in, inout, static_cast<int>(*length), type,
                                               FunctionOf<Operation>(i));
    } else {
      Callers<Operation>::Get(i)(in, inout, length, &type);
    }
  }
};

template <typename Handle>
constexpr Handled kHandled = Handled::kCommunicator;
template <>
constexpr Handled kHandled<MPI_File> = Handled::kFile;
template <>
constexpr Handled kHandled<MPI_Win> = Handled::kWindow;
template <>
constexpr Handled kHandled<MPI_Session> = Handled::kSession;

// Files are not numbers in every interface.
template <typename Handle>
struct TheirObject {
  using Type = TheirHandle;
  static Type Of(Handle ours) { return foreign::Theirs(ours); }
};
template <>
struct TheirObject<MPI_File> {
  using Type = File;
  static Type Of(MPI_File ours) { return TheirFile(ours); }
};

template <typename Handle>
struct Handler {
  using Ours = void(Handle*, int*, ...);
  using Theirs = void(typename TheirObject<Handle>::Type*, int*, ...);
  template <size_t i>
  static void Caller(Handle* object, int* code, ...) {
    Call(i, *object, *code);
  }

 private:
  __attribute__((noinline)) static void Call(size_t i, Handle object, int code) {
    auto handle = TheirObject<Handle>::Of(object);
    int their_code = TheirCode(code);
    if (auto* const call = Callers<Handler>::CallerOf(i).load(std::memory_order_relaxed)) {
      reinterpret_cast<HandlerCaller*>(call)(kHandled<Handle>, &handle, &their_code,
                                             FunctionOf<Handler>(i));
    } else {
      Callers<Handler>::Get(i)(&handle, &their_code);
    }
  }
};

// Calls create(function of ours) for a function of the program.
template <typename Kind, typename Create>
int CreateFor(const char* call, typename Kind::Theirs* function, Create create) {
  typename Kind::Ours* ours = nullptr;
  if (function != nullptr) {
    ours = Callers<Kind>::For(function);
    if (ours == nullptr) {
      return Refuse(call, MPI_ERR_NO_MEM, "more than 256 functions of the program");
    }
  }
  return TheirCode(create(ours));
}

template <typename Count, typename Create>
int CreateOp(const char* call, typename Operation<Count>::Theirs* function, int commute,
             TheirHandle* op, Create create) {
  return CreateFor<Operation<Count>>(call, function, [&](auto* ours) {
    HandleOut<MPI_Op> made(op);
    const int code = create(ours, commute, made.get());
    made.Give();
    if (code == MPI_SUCCESS) {
      LastMade& last = LastOfThisThread();
      last.operation_handle = *op;
      last.operation_place = op;
      last.operation_function = reinterpret_cast<void (*)()>(function);
      last.operation_commutes = commute;
      last.operation = Callers<Operation<Count>>::CallerOf(ours);
    }
    return code;
  });
}

template <typename Handle, typename Create>
int CreateHandler(const char* call, typename Handler<Handle>::Theirs* function,
                  TheirHandle* errhandler, Create create) {
  return CreateFor<Handler<Handle>>(call, function, [&](auto* ours) {
    HandleOut<MPI_Errhandler> made(errhandler);
    const int code = create(ours, made.get());
    made.Give();
    if (code == MPI_SUCCESS) {
      LastOfThisThread().handler_handle = *errhandler;
      LastOfThisThread().handler = Callers<Handler<Handle>>::CallerOf(ours);
    }
    return code;
  });
}

// ---- Attributes ---------------------------------------------------------------------------------

template <typename Handle>
int CopyAttribute(Handle object, int number, void* extra_state, void* in, void* out, int* flag) {
  const auto& keyval = *static_cast<const Keyval*>(extra_state);
  return OurCode(
      keyval.copy(Theirs(object), Theirs(kKeyvals, number), keyval.extra_state, in, out, flag));
}

template <typename Handle>
int DeleteAttribute(Handle object, int number, void* value, void* extra_state) {
  const auto& keyval = *static_cast<const Keyval*>(extra_state);
  return OurCode(
      keyval.remove(Theirs(object), Theirs(kKeyvals, number), value, keyval.extra_state));
}

template <typename Handle, typename OurCopy, typename OurDelete>
int CreateKeyval(int (*create)(OurCopy*, OurDelete*, int*, void*), const char* call, Copy* copy,
                 Delete* remove, int* number, void* extra_state) {
  auto* const keyval = new (std::nothrow) Keyval{copy, remove, extra_state};
  if (keyval == nullptr) {
    return Refuse(call, MPI_ERR_NO_MEM, "no memory for a keyval");
  }
  OurCopy* our_copy = copy == nullptr ? nullptr : CopyAttribute<Handle>;
  if (CopiesAsItIs(copy)) {
    our_copy = reinterpret_cast<OurCopy*>(MPI_COMM_DUP_FN);  // those of other kinds are the same
  }
  const int code =
      create(our_copy, remove == nullptr ? nullptr : DeleteAttribute<Handle>, number, keyval);
  if (code != MPI_SUCCESS) {
    delete keyval;
  } else {
    LastOfThisThread().keyval_number = *number;
    LastOfThisThread().keyval = keyval;
  }
  return TheirCode(code);
}

// Values that are constants. A program gets the address of an integer, which stays.
template <const auto& kPairs>
void* PlaceOf(void* value) {
  static int places[std::size(kPairs)];
  const int ours = *static_cast<const int*>(value);
  for (size_t i = 0; i < std::size(kPairs); ++i) {
    if (kPairs[i].ours == ours) {
      places[i] = kPairs[i].theirs;
      return &places[i];
    }
  }
  return value;
}

constexpr Pair kNoRanks[] = {{MPI_PROC_NULL, kTheirProcNull}, {MPI_ANY_SOURCE, kTheirAnySource}};

void* TheirValue(int keyval, void* value) {
  static int last_used_code = 0;
  switch (keyval) {
    case MPI_HOST:
    case MPI_IO:
      return PlaceOf<kNoRanks>(value);
    case MPI_WIN_CREATE_FLAVOR:
      return PlaceOf<kFlavors>(value);
    case MPI_WIN_MODEL:
      return PlaceOf<kModels>(value);
    case MPI_LASTUSEDCODE:
      last_used_code = TheirCode(*static_cast<const int*>(value));
      return &last_used_code;
    default:
      return value;
  }
}

template <typename Handle>
int GetAttribute(int (*get)(Handle, int, void*, int*), TheirHandle object, int keyval, void* value,
                 int* flag) {
  const int ours = Ours(kKeyvals, keyval);
  const int code = get(Ours<Handle>(object), ours, value, flag);
  if (code == MPI_SUCCESS && *flag != 0) {
    auto* const place = static_cast<void**>(value);
    *place = TheirValue(ours, *place);
  }
  return TheirCode(code);
}

// ---- Generalised requests -----------------------------------------------------------------------

int Query(void* extra_state, MPI_Status* status) {
  const auto& request = *static_cast<const Grequest*>(extra_state);
  Status theirs{};
  GiveStatus(*status, &theirs);
  const int code =
      request.query == nullptr ? MPI_SUCCESS : request.query(request.extra_state, &theirs);
  *status = OurStatus(theirs);
  return OurCode(code);
}

int Free(void* extra_state) {
  const auto* const request = static_cast<const Grequest*>(extra_state);
  const int code = request->free == nullptr ? MPI_SUCCESS : request->free(request->extra_state);
  delete request;
  return OurCode(code);
}

int Cancel(void* extra_state, int complete) {
  const auto& request = *static_cast<const Grequest*>(extra_state);
  return request.cancel == nullptr ? MPI_SUCCESS
                                   : OurCode(request.cancel(request.extra_state, complete));
}

}  // namespace

FERRY_FOREIGN(int, Op_create,
              (void (*function)(void*, void*, int*, TheirHandle*), int commute, TheirHandle* op)) {
  return CreateOp<int>("MPI_Op_create", function, commute, op, abi.Op_create);
}

FERRY_FOREIGN(int, Op_create_c,
              (void (*function)(void*, void*, MPI_Count*, TheirHandle*), int commute,
               TheirHandle* op)) {
  return CreateOp<MPI_Count>("MPI_Op_create_c", function, commute, op, abi.Op_create_c);
}

#define FERRY_CREATE_HANDLER(Kind)                                                            \
  FERRY_FOREIGN(int, Kind##_create_errhandler,                                                \
                (Handler<MPI_##Kind>::Theirs * function, TheirHandle * errhandler)) {         \
    return CreateHandler<MPI_##Kind>("MPI_" #Kind "_create_errhandler", function, errhandler, \
                                     abi.Kind##_create_errhandler);                           \
  }

FERRY_CREATE_HANDLER(Comm)
FERRY_CREATE_HANDLER(File)
FERRY_CREATE_HANDLER(Session)
FERRY_CREATE_HANDLER(Win)

// NOLINTBEGIN(bugprone-macro-parentheses): a type.
#define FERRY_KEYVALS(create, get, Handle)                                                      \
  FERRY_FOREIGN(int, create, (Copy * copy, Delete * remove, int* keyval, void* extra_state)) {  \
    return CreateKeyval<Handle>(abi.create, "MPI_" #create, copy, remove, keyval, extra_state); \
  }                                                                                             \
  FERRY_FOREIGN(int, get, (TheirHandle object, int keyval, void* value, int* flag)) {           \
    return GetAttribute<Handle>(abi.get, object, keyval, value, flag);                          \
  }
// NOLINTEND(bugprone-macro-parentheses)

FERRY_KEYVALS(Comm_create_keyval, Comm_get_attr, MPI_Comm)
FERRY_KEYVALS(Type_create_keyval, Type_get_attr, MPI_Datatype)
FERRY_KEYVALS(Win_create_keyval, Win_get_attr, MPI_Win)
FERRY_KEYVALS(Keyval_create, Attr_get, MPI_Comm)

FERRY_FOREIGN(int, Grequest_start,
              (int (*query)(void*, Status*), int (*free)(void*), int (*cancel)(void*, int),
               void* extra_state, TheirHandle* request)) {
  auto* const state = new (std::nothrow) Grequest{query, free, cancel, extra_state};
  if (state == nullptr) {
    return Refuse("MPI_Grequest_start", MPI_ERR_NO_MEM, "no memory for a request");
  }
  HandleOut<MPI_Request> made(request);
  const int code = abi.Grequest_start(Query, Free, Cancel, state, made.get());
  made.Give();
  if (code != MPI_SUCCESS) {
    delete state;
  } else {
    LastOfThisThread().request_handle = *request;
    LastOfThisThread().request = state;
  }
  return TheirCode(code);
}

// ---- Data representations of files --------------------------------------------------------------

namespace {

// The program's functions for a representation, which lasts as long as the process.
template <typename Count>
struct TheirDatarep {
  using Convert = int(void*, TheirHandle, Count, void*, MPI_Offset, void*);
  using Extent = int(TheirHandle, MPI_Aint*, void*);

  static int Read(void* memory, MPI_Datatype type, Count count, void* in_file, MPI_Offset position,
                  void* self) {
    const auto* const own = static_cast<const TheirDatarep*>(self);
    return own->read(memory, foreign::Theirs(type), count, in_file, position, own->extra_state);
  }
  static int Write(void* memory, MPI_Datatype type, Count count, void* in_file, MPI_Offset position,
                   void* self) {
    const auto* const own = static_cast<const TheirDatarep*>(self);
    return own->write(memory, foreign::Theirs(type), count, in_file, position, own->extra_state);
  }
  static int FindExtent(MPI_Datatype type, MPI_Aint* extent, void* self) {
    const auto* const own = static_cast<const TheirDatarep*>(self);
    return own->extent(foreign::Theirs(type), extent, own->extra_state);
  }

  Convert* read;
  Convert* write;
  Extent* extent;
  void* extra_state;
};

// MPI_CONVERSION_FN_NULL is a null pointer in both interfaces.
template <typename Count, typename Register>
int RegisterDatarep(const char* call, const char* name, const TheirDatarep<Count>& given,
                    Register* register_ours) {
  using Datarep = TheirDatarep<Count>;
  auto* const kept = new (std::nothrow) Datarep(given);
  if (kept == nullptr) {
    return Refuse(call, MPI_ERR_NO_MEM, "no memory for a data representation");
  }
  const int code = register_ours(name, given.read == nullptr ? nullptr : Datarep::Read,
                                 given.write == nullptr ? nullptr : Datarep::Write,
                                 given.extent == nullptr ? nullptr : Datarep::FindExtent, kept);
  if (code != MPI_SUCCESS) {
    delete kept;
  }
  return TheirCode(code);
}

}  // namespace

FERRY_FOREIGN(int, Register_datarep,
              (const char* datarep, TheirDatarep<int>::Convert* read,
               TheirDatarep<int>::Convert* write, TheirDatarep<int>::Extent* extent,
               void* extra_state)) {
  return RegisterDatarep<int>("MPI_Register_datarep", datarep, {read, write, extent, extra_state},
                              abi.Register_datarep);
}

FERRY_FOREIGN(int, Register_datarep_c,
              (const char* datarep, TheirDatarep<MPI_Count>::Convert* read,
               TheirDatarep<MPI_Count>::Convert* write, TheirDatarep<MPI_Count>::Extent* extent,
               void* extra_state)) {
  return RegisterDatarep<MPI_Count>("MPI_Register_datarep_c", datarep,
                                    {read, write, extent, extra_state}, abi.Register_datarep_c);
}

}  // namespace ferry::foreign

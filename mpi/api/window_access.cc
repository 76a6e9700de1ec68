// Access to windows: puts, gets and accumulates (MPI 5.0, section 12.3).
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mpi/api/function.h"
#include "mpi/api/message_arguments.h"
#include "mpi/api/window_local.h"
#include "mpi/init/fail.h"
#include "mpi/rma/access.h"
#include "mpi/rma/accumulate.h"
#include "mpi/rma/elements.h"
#include "mpi/rma/operation.h"
#include "mpi/rma/window.h"

namespace ferry::mpi {
namespace {

struct AccessArguments {
  const char* call;  // the function's name, for messages
  const void* buffer;
  int64_t count;
  MPI_Datatype datatype;
  int rank;
  MPI_Aint disp;
  int64_t target_count;
  MPI_Datatype target_datatype;
  MPI_Win win;
};

// The objects and values that the arguments stand for.
struct Access {
  Win* win = nullptr;
  bool is_null = false;  // the target is MPI_PROC_NULL
  Elements here;
  Elements there;
  WindowAddress window_address;
};

std::string Text(int64_t number) { return std::to_string(number); }

Failure FindType(MPI_Datatype handle, const char* whose, const Datatype** type) {
  *type = datatypes.Find(handle);
  return *type != nullptr
             ? Failure{}
             : Failure{MPI_ERR_TYPE, std::string("the ") + whose +
                                         " datatype does not exist: is it null, or was "
                                         "it freed?"};
}

Failure FindHere(const void* buffer, int64_t count, MPI_Datatype datatype, const char* whose,
                 Elements* here) {
  *here = {const_cast<void*>(buffer), count, nullptr};
  FERRY_RETURN_FAILURE(FindType(datatype, whose, &here->type));
  return CheckData(buffer, count, *here->type);
}

Failure FindThere(const AccessArguments& arguments, Access* access) {
  access->there = {nullptr, arguments.target_count, nullptr};
  FERRY_RETURN_FAILURE(FindType(arguments.target_datatype, "target's", &access->there.type));
  const Datatype& type = *access->there.type;
  if (!type.IsCommitted()) {
    return {MPI_ERR_TYPE, "the target's datatype is not committed; call MPI_Type_commit first"};
  }
  const Result<int64_t> bytes = type.PackedBytes(arguments.target_count);
  return bytes.ok() ? FindWindowAddress(*access->win, arguments.rank, arguments.disp, access->there,
                                        &access->window_address)
                    : bytes.failure();
}

Failure CheckSizes(const char* whose, int64_t here, int64_t there) {
  return here == there
             ? Failure{}
             : Failure{MPI_ERR_TYPE, "the " + std::string(whose) + " elements have " + Text(here) +
                                         " bytes, the target's " + Text(there)};
}

// `is_request`: the call is for passive targets only.
Failure FindTarget(const AccessArguments& arguments, bool is_request, Access* access) {
  Win& win = *access->win;
  access->is_null = arguments.rank == MPI_PROC_NULL;
  if (access->is_null) {
    return {};
  }
  if (!win.HasRank(arguments.rank)) {
    return {MPI_ERR_RANK, "the target " + Text(arguments.rank) +
                              " is no rank of the window, which has ranks 0 to " +
                              Text(win.size() - 1)};
  }
  FERRY_RETURN_FAILURE(is_request ? win.epochs().CheckPassive(arguments.rank)
                                  : win.epochs().CheckAccess(arguments.rank));
  return FindThere(arguments, access);
}

Failure FindMove(const AccessArguments& arguments, bool is_request, Access* access) {
  FERRY_RETURN_FAILURE(FindTarget(arguments, is_request, access));
  if (access->is_null) {
    return {};
  }
  FERRY_RETURN_FAILURE(
      FindHere(arguments.buffer, arguments.count, arguments.datatype, "origin's", &access->here));
  return CheckSizes("origin's", access->here.size_bytes(), access->there.size_bytes());
}

// Returns the arguments for the short way (window_local.h); it takes no elements of two types.
std::optional<LocalCall> LocalCallOf(const AccessArguments& arguments) {
  if (arguments.datatype != arguments.target_datatype ||
      arguments.count != arguments.target_count) {
    return std::nullopt;
  }
  return LocalCall{arguments.win, arguments.rank, arguments.disp, arguments.datatype,
                   arguments.count};
}

int FindWin(const char* call, MPI_Win handle, Access* access) {
  access->win = wins.Find(handle);
  return access->win != nullptr ? MPI_SUCCESS
                                : FailHandle(call, nullptr, MPI_ERR_WIN, "MPI_Win", handle);
}

int End(const char* call, const Access& access, const Failure& failure) {
  return Conclude(call, &access.win->comm(), failure);
}

// Gives the program a handle for what `begin`, a function of (operation, is_over), begins.
template <typename Begin>
int WithRequest(const char* call, Access& access, MPI_Request* request, Begin&& begin) {
  if (request == nullptr) {
    return End(call, access, {MPI_ERR_ARG, "request is a null pointer"});
  }
  bool is_over = true;
  Ref<Operation> operation =
      MakeRef<Operation>(*access.win, access.is_null ? 0 : access.window_address.rank);
  const Failure failure = access.is_null ? Failure{} : begin(operation, &is_over);
  if (!failure.ok()) {
    (void)operation->Finish();  // what was wrong before it says more
    return End(call, access, failure);
  }
  if (is_over) {
    *request = completed_request;
    return MPI_SUCCESS;
  }
  access.win->AddOperation(operation);
  *request = operation->Publish();
  if (*request == nullptr) {
    *request = MPI_REQUEST_NULL;
    return End(call, access, {MPI_ERR_NO_MEM, "no memory for another request"});
  }
  (void)operation.Leave();
  return MPI_SUCCESS;
}

// ---- Puts and gets ------------------------------------------------------------------------------

int PutNow(const AccessArguments& arguments) {
  if (const auto local = LocalCallOf(arguments); local && PutLocal(*local, arguments.buffer))
      [[likely]] {
    return MPI_SUCCESS;
  }
  Access access;
  FERRY_RETURN_ERROR(FindWin(arguments.call, arguments.win, &access));
  Failure failure = FindMove(arguments, false, &access);
  if (failure.ok() && !access.is_null) {
    bool is_over = true;
    failure = Put(*access.win, access.window_address, access.here, access.there, nullptr, &is_over);
  }
  return End(arguments.call, access, failure);
}

int GetNow(const AccessArguments& arguments) {
  if (const auto local = LocalCallOf(arguments);
      local && GetLocal(*local, const_cast<void*>(arguments.buffer))) [[likely]] {
    return MPI_SUCCESS;
  }
  Access access;
  FERRY_RETURN_ERROR(FindWin(arguments.call, arguments.win, &access));
  Failure failure = FindMove(arguments, false, &access);
  if (failure.ok() && !access.is_null) {
    bool is_over = true;
    failure = Get(*access.win, access.window_address, access.here, access.there, nullptr, &is_over);
  }
  return End(arguments.call, access, failure);
}

int BeginPut(const AccessArguments& arguments, MPI_Request* request) {
  Access access;
  FERRY_RETURN_ERROR(FindWin(arguments.call, arguments.win, &access));
  FERRY_RETURN_ERROR(End(arguments.call, access, FindMove(arguments, true, &access)));
  return WithRequest(arguments.call, access, request,
                     [&](const Ref<Operation>& operation, bool* is_over) {
                       return Put(*access.win, access.window_address, access.here, access.there,
                                  operation.get(), is_over);
                     });
}

int BeginGet(const AccessArguments& arguments, MPI_Request* request) {
  Access access;
  FERRY_RETURN_ERROR(FindWin(arguments.call, arguments.win, &access));
  FERRY_RETURN_ERROR(End(arguments.call, access, FindMove(arguments, true, &access)));
  return WithRequest(arguments.call, access, request,
                     [&](const Ref<Operation>& operation, bool* is_over) {
                       return Get(*access.win, access.window_address, access.here, access.there,
                                  operation, is_over);
                     });
}

// ---- Accumulates --------------------------------------------------------------------------------

struct ResultArguments {
  void* buffer;
  int64_t count;
  MPI_Datatype datatype;
};

// Packed data in host memory.
class Packed {
 public:
  // Copies elements there.
  Failure Fill(const Elements& from) {
    bytes_.resize(static_cast<size_t>(from.size_bytes()));
    return Payload(from.buffer, from.count, *from.type).CopyOut(bytes_.data());
  }
  void Resize(int64_t bytes) { bytes_.resize(static_cast<size_t>(bytes)); }
  Failure CopyTo(const Elements& to) const {
    return Payload(to.buffer, to.count, *to.type).CopyIn(bytes_.data(), to.size_bytes());
  }
  std::byte* data() { return bytes_.data(); }

 private:
  std::vector<std::byte> bytes_;
};

Failure FindOp(MPI_Op handle, const Op** op) {
  *op = ops.Find(handle);
  return *op != nullptr ? Failure{}
                        : Failure{MPI_ERR_OP,
                                  "the operation does not exist: is it null, or was it "
                                  "freed?"};
}

// `result` null: what was there is of no interest.
Failure AccumulateAt(const AccessArguments& arguments, const ResultArguments* result,
                     MPI_Op operation, bool is_request, Access* access) {
  const Op* op = nullptr;
  FERRY_RETURN_FAILURE(FindOp(operation, &op));
  FERRY_RETURN_FAILURE(FindTarget(arguments, is_request, access));
  if (access->is_null) {
    return {};
  }
  const int64_t bytes = access->there.size_bytes();
  // Of MPI_NO_OP the origin's arguments are not looked at.
  const bool has_data = op->kind() != OpKind::kNoOp;
  Packed data;
  if (has_data) {
    FERRY_RETURN_FAILURE(
        FindHere(arguments.buffer, arguments.count, arguments.datatype, "origin's", &access->here));
    FERRY_RETURN_FAILURE(CheckSizes("origin's", access->here.size_bytes(), bytes));
    FERRY_RETURN_FAILURE(data.Fill(access->here));
  }
  Elements to;
  Packed found;
  if (result != nullptr) {
    FERRY_RETURN_FAILURE(
        FindHere(result->buffer, result->count, result->datatype, "result's", &to));
    FERRY_RETURN_FAILURE(CheckSizes("result's", to.size_bytes(), bytes));
    found.Resize(bytes);
  }
  FERRY_RETURN_FAILURE(AccumulatePacked(*access->win, access->window_address, access->there, *op,
                                        has_data ? data.data() : nullptr,
                                        result != nullptr ? found.data() : nullptr));
  return result != nullptr ? found.CopyTo(to) : Failure{};
}

int AccumulateNow(const AccessArguments& arguments, const ResultArguments* result, MPI_Op op) {
  const auto local = LocalCallOf(arguments);
  const bool is_done =
      local && (result == nullptr
                    ? AccumulateLocal(*local, op, arguments.buffer)
                    : result->datatype == arguments.datatype && result->count == arguments.count &&
                          FetchLocal(*local, op, arguments.buffer, result->buffer));
  if (is_done) {
    return MPI_SUCCESS;
  }
  Access access;
  FERRY_RETURN_ERROR(FindWin(arguments.call, arguments.win, &access));
  return End(arguments.call, access, AccumulateAt(arguments, result, op, false, &access));
}

// The data have been taken, and what was found is there: the request is complete.
int BeginAccumulate(const AccessArguments& arguments, const ResultArguments* result, MPI_Op op,
                    MPI_Request* request) {
  Access access;
  FERRY_RETURN_ERROR(FindWin(arguments.call, arguments.win, &access));
  if (request == nullptr) {
    return End(arguments.call, access, {MPI_ERR_ARG, "request is a null pointer"});
  }
  FERRY_RETURN_ERROR(
      End(arguments.call, access, AccumulateAt(arguments, result, op, true, &access)));
  *request = completed_request;
  return MPI_SUCCESS;
}

Failure NeedPredefined(MPI_Datatype datatype) {
  const Datatype* type = nullptr;
  FERRY_RETURN_FAILURE(FindType(datatype, "elements'", &type));
  return type->IsPredefined()
             ? Failure{}
             : Failure{MPI_ERR_TYPE, "the call takes an element of a predefined datatype"};
}

Failure NeedComparable(MPI_Datatype datatype) {
  FERRY_RETURN_FAILURE(NeedPredefined(datatype));
  const Datatype& type = *datatypes.Find(datatype);
  return IsComparable(*type.predefined())
             ? Failure{}
             : Failure{MPI_ERR_TYPE, "elements of " + type.Text() +
                                         " cannot be compared and swapped: the call takes "
                                         "integers, logicals and bytes"};
}

Failure CompareAndSwap(const AccessArguments& arguments, const void* compare, void* result,
                       Access* access) {
  FERRY_RETURN_FAILURE(NeedComparable(arguments.datatype));
  FERRY_RETURN_FAILURE(FindMove(arguments, false, access));
  if (access->is_null) {
    return {};
  }
  const Datatype& type = *access->there.type;
  const Elements expected{const_cast<void*>(compare), 1, &type};
  const Elements to{result, 1, &type};
  FERRY_RETURN_FAILURE(CheckData(compare, 1, type));
  FERRY_RETURN_FAILURE(CheckData(result, 1, type));
  Packed values[3];  // to compare with, new, found
  FERRY_RETURN_FAILURE(values[0].Fill(expected));
  FERRY_RETURN_FAILURE(values[1].Fill(access->here));
  values[2].Resize(type.size_bytes());
  FERRY_RETURN_FAILURE(CompareSwapElement(*access->win, access->window_address, type,
                                          values[0].data(), values[1].data(), values[2].data()));
  return values[2].CopyTo(to);
}

}  // namespace

// ---- The functions ------------------------------------------------------------------------------

#define FERRY_ORIGIN Count origin_count, MPI_Datatype origin_datatype
#define FERRY_RESULT void *result_addr, Count result_count, MPI_Datatype result_datatype
#define FERRY_TARGET \
  int target_rank, MPI_Aint target_disp, Count target_count, MPI_Datatype target_datatype
#define FERRY_ACCESS                                                                      \
  {                                                                                       \
    FERRY_MPI_NAME, origin_addr, origin_count, origin_datatype, target_rank, target_disp, \
        target_count, target_datatype, win                                                \
  }

FERRY_MPI_TWINS(MPI_Put, (const void* origin_addr, FERRY_ORIGIN, FERRY_TARGET, MPI_Win win),
                PutNow(FERRY_ACCESS));
FERRY_MPI_TWINS(MPI_Get, (void* origin_addr, FERRY_ORIGIN, FERRY_TARGET, MPI_Win win),
                GetNow(FERRY_ACCESS));
FERRY_MPI_TWINS(MPI_Rput,
                (const void* origin_addr, FERRY_ORIGIN, FERRY_TARGET, MPI_Win win,
                 MPI_Request* request),
                BeginPut(FERRY_ACCESS, request));
FERRY_MPI_TWINS(MPI_Rget,
                (void* origin_addr, FERRY_ORIGIN, FERRY_TARGET, MPI_Win win, MPI_Request* request),
                BeginGet(FERRY_ACCESS, request));

FERRY_MPI_TWINS(MPI_Accumulate,
                (const void* origin_addr, FERRY_ORIGIN, FERRY_TARGET, MPI_Op op, MPI_Win win),
                AccumulateNow(FERRY_ACCESS, nullptr, op));
FERRY_MPI_TWINS(MPI_Raccumulate,
                (const void* origin_addr, FERRY_ORIGIN, FERRY_TARGET, MPI_Op op, MPI_Win win,
                 MPI_Request* request),
                BeginAccumulate(FERRY_ACCESS, nullptr, op, request));

namespace {

int GetAccumulate(const AccessArguments& arguments, const ResultArguments& result, MPI_Op op) {
  return AccumulateNow(arguments, &result, op);
}

int BeginGetAccumulate(const AccessArguments& arguments, const ResultArguments& result, MPI_Op op,
                       MPI_Request* request) {
  return BeginAccumulate(arguments, &result, op, request);
}

}  // namespace

FERRY_MPI_TWINS(MPI_Get_accumulate,
                (const void* origin_addr, FERRY_ORIGIN, FERRY_RESULT, FERRY_TARGET, MPI_Op op,
                 MPI_Win win),
                GetAccumulate(FERRY_ACCESS, {result_addr, result_count, result_datatype}, op));
FERRY_MPI_TWINS(MPI_Rget_accumulate,
                (const void* origin_addr, FERRY_ORIGIN, FERRY_RESULT, FERRY_TARGET, MPI_Op op,
                 MPI_Win win, MPI_Request* request),
                BeginGetAccumulate(FERRY_ACCESS, {result_addr, result_count, result_datatype}, op,
                                   request));

FERRY_MPI_CALL(int, MPI_Fetch_and_op,
               (const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
                MPI_Aint target_disp, MPI_Op op, MPI_Win win)) {
  if (FetchLocal({win, target_rank, target_disp, datatype, 1}, op, origin_addr, result_addr))
      [[likely]] {
    return MPI_SUCCESS;
  }
  Access access;
  FERRY_RETURN_ERROR(FindWin(FERRY_MPI_NAME, win, &access));
  FERRY_RETURN_ERROR(End(FERRY_MPI_NAME, access, NeedPredefined(datatype)));
  const ResultArguments result{result_addr, 1, datatype};
  return End(FERRY_MPI_NAME, access,
             AccumulateAt({FERRY_MPI_NAME, origin_addr, 1, datatype, target_rank, target_disp, 1,
                           datatype, win},
                          &result, op, false, &access));
}

FERRY_MPI_CALL(int, MPI_Compare_and_swap,
               (const void* origin_addr, const void* compare_addr, void* result_addr,
                MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win)) {
  if (CompareSwapLocal({win, target_rank, target_disp, datatype, 1}, compare_addr, origin_addr,
                       result_addr)) [[likely]] {
    return MPI_SUCCESS;
  }
  Access access;
  FERRY_RETURN_ERROR(FindWin(FERRY_MPI_NAME, win, &access));
  return End(FERRY_MPI_NAME, access,
             CompareAndSwap({FERRY_MPI_NAME, origin_addr, 1, datatype, target_rank, target_disp, 1,
                             datatype, win},
                            compare_addr, result_addr, &access));
}

}  // namespace ferry::mpi

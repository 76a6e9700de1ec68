#include <mpix.h>

#include <utility>

#include "tests/mpi/fuzz/value_list.h"

namespace ferry::mpi {

std::vector<std::pair<const char*, uint64_t>> WrongHandles(World& world, uint64_t null,
                                                           uint64_t freed) {
  const uint64_t live = Word(world.comm);
  return {{"a null handle", null},
          {"0", 0},
          {"a freed handle", freed},
          {"1023", 1023},
          {"1024", 1024},
          {"all bits", ~uint64_t{0}},
          {"the address of a buffer", Word(world.send_buffer())},
          {"beside a live handle", live + 1},
          {"far behind a live handle", live + (uint64_t{1} << 27)}};
}

namespace {

using Quality = Value::Quality;

// ---- Handles ------------------------------------------------------------------------------------

struct HandleKind {
  uint64_t null;
  uint64_t freed;
  uint64_t of_another_kind;
  bool may_be_null = false;
};

// Adds the handle itself, or (in_slot) its address.
ValueList& AddWrong(ValueList& list, World& world, const HandleKind& kind, bool in_slot = false) {
  auto wrong = WrongHandles(world, kind.null, kind.freed);
  wrong.emplace_back("a handle of another kind", kind.of_another_kind);
  for (const auto& [text, word] : wrong) {
    if (word == kind.null && kind.may_be_null) {
      continue;
    }
    if (in_slot) {
      list.BadAt(text, {word});
    } else {
      list.Bad(text, word);
    }
  }
  return list;
}

HandleKind CommKind(World& world) {
  return {Word(MPI_COMM_NULL), Word(world.freed_comm), Word(MPI_INT)};
}
HandleKind TypeKind(World& world) {
  return {Word(MPI_DATATYPE_NULL), Word(world.freed_type), Word(world.comm)};
}
HandleKind GroupKind(World& world) {
  return {Word(MPI_GROUP_NULL), Word(world.freed_group), Word(world.comm)};
}
HandleKind InfoKind(World& world) {
  return {Word(MPI_INFO_NULL), Word(world.freed_info), Word(world.comm)};
}
HandleKind OpKind(World& world) {
  return {Word(MPI_OP_NULL), Word(world.freed_op), Word(world.comm)};
}
HandleKind ControlKind(World& world) {
  return {Word(MPI_T_CVAR_HANDLE_NULL), Word(world.freed_control), Word(world.counters)};
}
HandleKind CounterSessionKind(World& world) {
  return {Word(MPI_T_PVAR_SESSION_NULL), Word(world.freed_counters), Word(world.control)};
}
HandleKind SessionKind(World& world) {
  return {Word(MPI_SESSION_NULL), Word(world.ended_session), Word(world.comm)};
}
HandleKind ErrorHandlerKind(World& world) {
  return {Word(MPI_ERRHANDLER_NULL), Word(world.freed_handler), Word(world.comm)};
}
HandleKind RequestKind(World& world) {
  return {Word(MPI_REQUEST_NULL), Word(world.freed_request), Word(world.comm)};
}

Choices Communicators(Kind kind, World& world) {
  ValueList list(8, {MPI_ERR_COMM, MPI_ERR_TOPOLOGY});
  switch (kind) {
    case Kind::kTopologyComm:
      list.Good("dist_graph", world.dist_graph).Good("cart", world.cart).Good("graph", world.graph);
      list.Bad("one without a topology", world.comm);
      break;
    case Kind::kCartComm:
      list.Good("cart", world.cart).Bad("graph", world.graph).Bad("no topology", world.comm);
      break;
    case Kind::kGraphComm:
      list.Good("graph", world.graph).Bad("cart", world.cart).Bad("no topology", world.comm);
      break;
    case Kind::kDistGraphComm:
      list.Good("dist_graph", world.dist_graph).Bad("cart", world.cart);
      break;
    case Kind::kInterComm:  // there is none in a job of one rank: MPI_COMM_SELF is as bad as others
      list.Bad("MPI_COMM_SELF", MPI_COMM_SELF).Odd("MPI_COMM_NULL", MPI_COMM_NULL);
      break;
    default:
      list.Good("dup", world.comm)
          .Good("cart", world.cart)
          .Good("MPI_COMM_SELF", MPI_COMM_SELF)
          .Good("MPI_COMM_WORLD", MPI_COMM_WORLD);
  }
  return AddWrong(list, world, CommKind(world)).Take();
}

Choices Types(Kind kind, World& world) {
  ValueList list(8, {MPI_ERR_TYPE});
  if (kind == Kind::kDerivedType) {
    list.Good("vector", world.vector).Bad("MPI_INT", MPI_INT);
  } else if (kind == Kind::kNumericType) {
    list.Good("MPI_INT", MPI_INT).Odd("vector", world.vector).Odd("MPI_DOUBLE", MPI_DOUBLE);
    list.Odd("MPI_SHORT", MPI_SHORT).Odd("MPI_FLOAT_INT", MPI_FLOAT_INT);
    list.Odd("uncommitted", world.uncommitted);
  } else {
    list.Good("MPI_INT", MPI_INT);
    list.Odd("MPI_DOUBLE", MPI_DOUBLE).Odd("vector", world.vector);
    list.Odd("struct", world.structure).Odd("MPI_SHORT", MPI_SHORT);
    if (kind == Kind::kDataType) {
      list.Bad("uncommitted", world.uncommitted);
    } else {
      list.Good("uncommitted", world.uncommitted);
    }
  }
  return AddWrong(list, world, TypeKind(world)).Take();
}

Choices TypeArrays(Kind kind, World& world) {
  const uint64_t integer = Word(MPI_INT);
  ValueList list(8, {MPI_ERR_TYPE, MPI_ERR_ARG});
  list.GoodAt("MPI_INT and more", std::vector<uint64_t>(16, integer)).BadNull();
  list.OddAt("different ones", {Word(world.vector), Word(MPI_DOUBLE), integer, integer});
  list.BadAt("null types", std::vector<uint64_t>(16, Word(MPI_DATATYPE_NULL)));
  if (kind == Kind::kDataTypes) {
    list.BadAt("uncommitted ones", std::vector<uint64_t>(16, Word(world.uncommitted)));
  }
  return list.BadAt("freed ones", std::vector<uint64_t>(16, Word(world.freed_type))).Take();
}

Choices OtherHandles(Kind kind, World& world) {
  switch (kind) {
    case Kind::kGroup: {
      ValueList list(8, {MPI_ERR_GROUP});
      list.Good("world's", world.group).Odd("MPI_GROUP_EMPTY", MPI_GROUP_EMPTY);
      return AddWrong(list, world, GroupKind(world)).Take();
    }
    case Kind::kInfo: {
      ValueList list(8, {MPI_ERR_INFO});
      list.Good("info", world.info).Odd("MPI_INFO_ENV", MPI_INFO_ENV);
      return AddWrong(list, world, InfoKind(world)).Take();
    }
    case Kind::kInfoOrNull: {
      ValueList list(8, {MPI_ERR_INFO});
      list.Good("MPI_INFO_NULL", MPI_INFO_NULL).Good("info", world.info);
      HandleKind info = InfoKind(world);
      info.may_be_null = true;
      return AddWrong(list, world, info).Take();
    }
    case Kind::kOp: {
      ValueList list(8, {MPI_ERR_OP});
      list.Good("MPI_SUM", MPI_SUM).Good("user's", world.op).Odd("MPI_BAND", MPI_BAND);
      list.Odd("MPI_MAXLOC", MPI_MAXLOC).Odd("MPI_LAND", MPI_LAND);
      return AddWrong(list, world, OpKind(world)).Take();
    }
    case Kind::kPredefinedOp: {
      ValueList list(8, {MPI_ERR_OP});
      list.Good("MPI_SUM", MPI_SUM).Bad("user's", world.op).Odd("MPI_BAND", MPI_BAND);
      list.Odd("MPI_MAXLOC", MPI_MAXLOC).Odd("MPI_REPLACE", MPI_REPLACE);
      list.Odd("MPI_NO_OP", MPI_NO_OP);
      return AddWrong(list, world, OpKind(world)).Take();
    }
    case Kind::kErrorHandler:
    case Kind::kFileErrorHandler:
    case Kind::kSessionErrorHandler: {
      ValueList list(8, {MPI_ERR_ERRHANDLER, MPI_ERR_ARG});
      list.Good("MPI_ERRORS_RETURN", MPI_ERRORS_RETURN);
      list.Odd("of communicators", world.handler).Odd("of files", world.file_handler);
      list.Odd("of sessions", world.session_handler);
      list.Bad("of another kind of object",
               kind == Kind::kErrorHandler ? world.file_handler : world.handler);
      return AddWrong(list, world, ErrorHandlerKind(world)).Take();
    }
    case Kind::kToolEnum: {
      ValueList list(8, {MPI_T_ERR_INVALID});
      list.Good("of a variable", world.tool_enum);
      return AddWrong(list, world, {0, 0, Word(world.control)}).Take();
    }
    case Kind::kControlHandle: {
      ValueList list(8, {MPI_T_ERR_INVALID_HANDLE});
      list.Good("of a number", world.control);
      return AddWrong(list, world, ControlKind(world)).Take();
    }
    case Kind::kCounterSession: {
      ValueList list(8, {MPI_T_ERR_INVALID_SESSION});
      list.Good("session", world.counters);
      return AddWrong(list, world, CounterSessionKind(world)).Take();
    }
    case Kind::kCounterHandle: {
      ValueList list(8, {MPI_T_ERR_INVALID_HANDLE});
      list.Good("of a counter", world.counter).Odd("all", MPI_T_PVAR_ALL_HANDLES);
      return AddWrong(list, world, ControlKind(world)).Take();
    }
    case Kind::kSession: {
      ValueList list(8, {MPI_ERR_SESSION});
      list.Good("session", world.session);
      return AddWrong(list, world, SessionKind(world)).Take();
    }
    default:
      return {};
  }
}

// Most are right in one state of the window only. One that would make the call wait is not among
// them.
Choices Windows(Kind kind, World& world) {
  const HandleKind window{Word(MPI_WIN_NULL), Word(world.freed_info), Word(world.comm)};
  ValueList list(8, {MPI_ERR_WIN, MPI_ERR_RMA_SYNC});
  switch (kind) {
    case Kind::kWindow:
      list.Good("a window", world.windows().idle).Odd("a locked one", world.windows().locked);
      break;
    case Kind::kDynamicWindow:
      list = ValueList(8, {MPI_ERR_WIN, MPI_ERR_RMA_FLAVOR});
      list.Good("a dynamic one", world.windows().dynamic).Bad("another one", world.windows().idle);
      break;
    case Kind::kLockedWindow:
      list.Good("a locked one", world.windows().locked).Bad("in no epoch", world.windows().idle);
      break;
    case Kind::kLockedAll:
      list.Good("all locked", world.windows().all).Bad("in no epoch", world.windows().idle);
      break;
    case Kind::kWindowToStart:
      list.Good("posted", world.windows().posted).Bad("a locked one", world.windows().locked);
      break;
    case Kind::kWindowToComplete:
      list.Good("started", world.windows().started).Bad("in no epoch", world.windows().idle);
      break;
    case Kind::kWindowToEnd:
      list.Good("completed", world.windows().completed).Bad("in no epoch", world.windows().idle);
      break;
    case Kind::kWindowToFree: {
      ValueList freed(8, {MPI_ERR_WIN, MPI_ERR_RMA_SYNC, MPI_ERR_ARG});
      freed.GoodAt("a window", {Word(world.windows().idle)}).BadNull();
      freed.BadAt("a locked one", {Word(world.windows().locked)});
      return AddWrong(freed, world, window, true).Take();
    }
    default:
      return {};
  }
  return AddWrong(list, world, window).Take();
}

// Arguments that are the address of a handle which the call frees.
Choices FreedHandles(Kind kind, World& world) {
  switch (kind) {
    case Kind::kCommToFree: {
      ValueList list(8, {MPI_ERR_COMM, MPI_ERR_ARG});
      list.GoodAt("dup", {Word(world.comm)}).GoodAt("cart", {Word(world.cart)}).BadNull();
      list.BadAt("MPI_COMM_WORLD", {Word(MPI_COMM_WORLD)});
      list.BadAt("MPI_COMM_SELF", {Word(MPI_COMM_SELF)});
      return AddWrong(list, world, CommKind(world), true).Take();
    }
    case Kind::kGroupToFree: {
      ValueList list(8, {MPI_ERR_GROUP, MPI_ERR_ARG});
      list.GoodAt("world's", {Word(world.group)}).BadNull();
      list.OddAt("MPI_GROUP_EMPTY", {Word(MPI_GROUP_EMPTY)});
      return AddWrong(list, world, GroupKind(world), true).Take();
    }
    case Kind::kTypeToFree:
    case Kind::kTypeToCommit: {
      ValueList list(8, {MPI_ERR_TYPE, MPI_ERR_ARG});
      list.GoodAt("vector", {Word(world.vector)}).BadNull();
      list.GoodAt("uncommitted", {Word(world.uncommitted)});
      list.At(kind == Kind::kTypeToFree ? Quality::kBad : Quality::kGood, "MPI_INT",
              {Word(MPI_INT)});
      return AddWrong(list, world, TypeKind(world), true).Take();
    }
    case Kind::kInfoToFree: {
      ValueList list(8, {MPI_ERR_INFO, MPI_ERR_ARG});
      list.GoodAt("info", {Word(world.info)}).BadNull();
      list.BadAt("MPI_INFO_ENV", {Word(MPI_INFO_ENV)});
      return AddWrong(list, world, InfoKind(world), true).Take();
    }
    case Kind::kOpToFree: {
      ValueList list(8, {MPI_ERR_OP, MPI_ERR_ARG});
      list.GoodAt("user's", {Word(world.op)}).BadNull().BadAt("MPI_SUM", {Word(MPI_SUM)});
      return AddWrong(list, world, OpKind(world), true).Take();
    }
    case Kind::kErrorHandlerToFree: {
      ValueList list(8, {MPI_ERR_ERRHANDLER, MPI_ERR_ARG});
      list.GoodAt("user's", {Word(world.handler)}).BadNull();
      list.OddAt("MPI_ERRORS_RETURN", {Word(MPI_ERRORS_RETURN)});
      return AddWrong(list, world, ErrorHandlerKind(world), true).Take();
    }
    case Kind::kControlToFree: {
      ValueList list(8, {MPI_T_ERR_INVALID_HANDLE});
      list.GoodAt("of a number", {Word(world.control)}).BadNull();
      return AddWrong(list, world, ControlKind(world), true).Take();
    }
    case Kind::kCounterSessionToFree: {
      ValueList list(8, {MPI_T_ERR_INVALID_SESSION});
      list.GoodAt("session", {Word(world.counters)}).BadNull();
      return AddWrong(list, world, CounterSessionKind(world), true).Take();
    }
    case Kind::kCounterToFree: {
      ValueList list(8, {MPI_T_ERR_INVALID_HANDLE});
      list.GoodAt("of a counter", {Word(world.counter)}).BadNull();
      return AddWrong(list, world, ControlKind(world), true).Take();
    }
    case Kind::kSessionToEnd: {
      ValueList list(8, {MPI_ERR_SESSION, MPI_ERR_ARG});
      list.GoodAt("session", {Word(world.session)}).BadNull();
      return AddWrong(list, world, SessionKind(world), true).Take();
    }
    default:
      return {};
  }
}

// Of calls on partitions, and of those that match requests.
Choices PartitionedRequests(Kind kind, World& world) {
  const uint64_t null = Word(MPI_REQUEST_NULL);
  ValueList list(8, {MPI_ERR_REQUEST, MPI_ERR_ARG});
  HandleKind request = RequestKind(world);
  switch (kind) {
    case Kind::kSendOfPartitions:
      list.Good("send", world.partitioned().send).Bad("receive", world.partitioned().receive);
      list.Bad("inactive", world.partitioned().idle_send).Bad("plain", world.inactive);
      return AddWrong(list, world, request).Take();
    case Kind::kReceiveOfPartitions:  // a null one has no partitions, and all of them have arrived
      list.Good("receive", world.partitioned().receive).Bad("send", world.partitioned().send);
      list.Odd("inactive", world.partitioned().idle_receive).Bad("plain", world.inactive);
      list.Odd("MPI_REQUEST_NULL", MPI_REQUEST_NULL);
      request.may_be_null = true;
      return AddWrong(list, world, request).Take();
    case Kind::kPartitionedRequest:
      list.Good("send", world.partitioned().send).Good("receive", world.partitioned().receive);
      list.Bad("inactive", world.partitioned().idle_send).Bad("plain", world.pending);
      return AddWrong(list, world, request).Take();
    case Kind::kPartitionedRequestAt:
      list.GoodAt("send", {Word(world.partitioned().send)}).BadNull();
      list.BadAt("plain", {Word(world.inactive)});
      return AddWrong(list, world, request, true).Take();
    case Kind::kPartitionedRequests:
      list.GoodAt("both", {Word(world.partitioned().send), Word(world.partitioned().receive),
                           Word(world.partitioned().send)});
      list.BadNull().BadAt("plain ones", std::vector<uint64_t>(8, Word(world.inactive)));
      return list.BadAt("null ones", std::vector<uint64_t>(8, null)).Take();
    case Kind::kRequestForKernels:
      list.Good("send", world.partitioned().idle_send);
      list.Good("receive", world.partitioned().idle_receive);
      list.Bad("active", world.partitioned().send).Bad("plain", world.inactive);
      return AddWrong(list, world, request).Take();
    case Kind::kMatchableRequest:
      list.Good("inactive", world.inactive).Bad("pending", world.pending);
      list.Bad("partitioned", world.partitioned().idle_send);
      return AddWrong(list, world, request).Take();
    case Kind::kRequestToMatch:
      list.GoodAt("inactive", {Word(world.inactive)}).BadNull();
      list.BadAt("pending", {Word(world.pending)});
      list.BadAt("partitioned", {Word(world.partitioned().idle_send)});
      return AddWrong(list, world, request, true).Take();
    case Kind::kRequestsToMatch:
      list.GoodAt("inactive", {Word(world.inactive), null}).BadNull();
      list.BadAt("a pending one", std::vector<uint64_t>(8, Word(world.pending)));
      return list.BadAt("null ones", std::vector<uint64_t>(8, null)).Take();
    case Kind::kPrequestToFree:
      list = ValueList(8, {MPI_ERR_ARG, MPI_ERR_REQUEST});
      list.GoodAt("a send's", {Word(world.prequest())}).BadNull();
      list.BadAt("MPIX_PREQUEST_NULL", {Word(MPIX_PREQUEST_NULL)});
      list.BadAt("the address of a buffer", {Word(world.send_buffer())});
      return list.BadAt("all bits", {~uint64_t{0}}).Take();
    default:
      return {};
  }
}

Choices Requests(Kind kind, World& world) {
  const uint64_t null = Word(MPI_REQUEST_NULL);
  const uint64_t inactive = Word(world.inactive);
  ValueList list(8, {MPI_ERR_REQUEST, MPI_ERR_ARG});
  HandleKind request = RequestKind(world);
  switch (kind) {
    case Kind::kRequest:
      list.Good("inactive", world.inactive).Good("pending", world.pending);
      list.Good("MPI_REQUEST_NULL", MPI_REQUEST_NULL);
      list.Good("partitioned", world.partitioned().send);
      request.may_be_null = true;
      return AddWrong(list, world, request).Take();
    case Kind::kGeneralizedRequest:
      list.Good("generalised", world.generalized).Bad("pending", world.pending);
      return AddWrong(list, world, request).Take();
    case Kind::kRequestToEnd:
      list.GoodAt("completed", {Word(world.completed)}).GoodAt("inactive", {inactive}).BadNull();
      list.GoodAt("MPI_REQUEST_NULL", {null});
      list.GoodAt("partitioned", {Word(world.partitioned().idle_receive)});
      request.may_be_null = true;
      return AddWrong(list, world, request, true).Take();
    case Kind::kRequestToStart:
      list.GoodAt("inactive", {inactive}).BadNull().BadAt("pending", {Word(world.pending)});
      list.OddAt("partitioned", {Word(world.partitioned().idle_send)});
      list.BadAt("active and partitioned", {Word(world.partitioned().send)});
      return AddWrong(list, world, request, true).Take();
    case Kind::kRequestToCancel:
      list.GoodAt("pending", {Word(world.pending)}).BadNull().BadAt("inactive", {inactive});
      list.BadAt("partitioned", {Word(world.partitioned().send)});
      return AddWrong(list, world, request, true).Take();
    case Kind::kRequestToFree:
      list.GoodAt("inactive", {inactive}).BadNull();
      list.GoodAt("completed", {Word(world.completed)});
      list.GoodAt("partitioned", {Word(world.partitioned().idle_send)});
      list.BadAt("active and partitioned", {Word(world.partitioned().receive)});
      return AddWrong(list, world, request, true).Take();
    case Kind::kRequests:
      list.GoodAt("some", {null, Word(world.completed), inactive, null, null});
      list.GoodAt("none", std::vector<uint64_t>(8, null)).BadNull();
      return list.BadAt("a freed one", std::vector<uint64_t>(8, request.freed))
          .BadAt("wild ones", std::vector<uint64_t>(8, Word(world.send_buffer())))
          .Take();
    case Kind::kRequestsToStart:
      list.GoodAt("inactive", {inactive, null}).BadNull();
      list.OddAt("partitioned ones", {Word(world.partitioned().idle_receive),
                                      Word(world.partitioned().idle_send), inactive});
      return list.BadAt("null ones", std::vector<uint64_t>(8, null))
          .BadAt("a pending one", std::vector<uint64_t>(8, Word(world.pending)))
          .Take();
    default:
      return {};
  }
}

// For conversions: any word will do.
Choices Converted(World& world) {
  ValueList list(8, {});
  list.Good("MPI_COMM_WORLD", MPI_COMM_WORLD).Good("vector", world.vector);
  for (const auto& [text, word] : WrongHandles(world, 0, Word(world.freed_type))) {
    list.Good(text, word);
  }
  return list.Take();
}

}  // namespace

Choices HandleChoices(Kind kind, World& world) {
  switch (kind) {
    case Kind::kComm:
    case Kind::kTopologyComm:
    case Kind::kCartComm:
    case Kind::kGraphComm:
    case Kind::kDistGraphComm:
    case Kind::kInterComm:
      return Communicators(kind, world);
    case Kind::kDataType:
    case Kind::kAnyType:
    case Kind::kDerivedType:
    case Kind::kNumericType:
      return Types(kind, world);
    case Kind::kDataTypes:
    case Kind::kAnyTypes:
      return TypeArrays(kind, world);
    case Kind::kHandleToConvert:
      return Converted(world);
    default:
      break;
  }
  for (const auto& choices : {OtherHandles, Windows, FreedHandles, PartitionedRequests, Requests}) {
    if (Choices found = choices(kind, world); !found.values.empty()) {
      return found;
    }
  }
  return {};
}

}  // namespace ferry::mpi

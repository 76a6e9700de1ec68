#include "tests/mpi/fuzz/values.h"

#include <mpix.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/mpi/fuzz/value_list.h"

namespace ferry::mpi {
namespace {

constexpr int kTagMax = 0x3fffffff;  // MPI_TAG_UB

void User(void*) {}

std::vector<uint64_t> Repeat(int64_t number) { return std::vector<uint64_t>(16, Word(number)); }

bool IsWide(const Parameter& parameter) {
  return parameter.type.find("MPI_Count") != std::string::npos ||
         parameter.type.find("MPI_Aint") != std::string::npos;
}

// ---- Memory -------------------------------------------------------------------------------------

Choices Memory(Kind kind, size_t parameter, World& world) {
  ValueList list(8, {MPI_ERR_BUFFER, MPI_ERR_ARG});
  switch (kind) {
    case Kind::kSendBuffer:
      return list.Good("a buffer", world.send_buffer()).BadNull().Take();
    case Kind::kReceiveBuffer:
      return list.Good("a buffer", world.receive_buffer()).BadNull().Take();
    case Kind::kUpdatedBuffer:
      list.Good("a buffer", world.receive_buffer()).BadNull();
      return list.Bad("MPI_IN_PLACE", MPI_IN_PLACE).Take();
    case Kind::kCollectiveSendBuffer:
      list.Good("a buffer", world.send_buffer()).BadNull().Odd("MPI_IN_PLACE", MPI_IN_PLACE);
      return list.Odd("both buffers the same", world.receive_buffer()).Take();
    case Kind::kCollectiveReceiveBuffer:
      list.Good("a buffer", world.receive_buffer()).BadNull().Odd("MPI_IN_PLACE", MPI_IN_PLACE);
      return list.Odd("both buffers the same", world.send_buffer()).Take();
    case Kind::kAttachedBuffer:
      list.Good("a buffer", world.attached_buffer());
      return list.Good("MPI_BUFFER_AUTOMATIC", MPI_BUFFER_AUTOMATIC).BadNull().Take();
    case Kind::kOutput:
      return list.Good("an address", world.Slot(parameter)).BadNull().Take();
    case Kind::kOptionalOutput:
      return list.Good("an address", world.Slot(parameter)).Good("null", uint64_t{0}).Take();
    case Kind::kAnything:
      list.Good("an address", world.Slot(parameter)).OddNull();
      return list.Take();
    case Kind::kLocation:
      return list.Good("an address", world.Slot(parameter)).OddNull().Odd("-1", -1).Take();
    case Kind::kWindowBase:
      list = ValueList(8, {MPI_ERR_BASE});
      return list.Good("a buffer", world.send_buffer()).BadNull().Take();
    case Kind::kAttachedBase:
      list = ValueList(8, {MPI_ERR_RMA_ATTACH});
      list.Good("an attached buffer", world.attached_buffer());
      return list.BadNull().Bad("another buffer", world.send_buffer()).Take();
    case Kind::kFreedMemory:
      list = ValueList(8, {MPI_ERR_BASE, MPI_ERR_ARG});
      list.Good("nothing", uint64_t{0}).Bad("not from MPI_Alloc_mem", world.send_buffer());
      return list.Take();
    default:
      return {};
  }
}

// ---- Numbers ------------------------------------------------------------------------------------

Choices Messages(Kind kind, World&) {
  switch (kind) {
    case Kind::kDestination:
    case Kind::kNearDestination: {
      ValueList list(4, {MPI_ERR_RANK});
      list.Good("MPI_PROC_NULL", MPI_PROC_NULL);
      if (kind == Kind::kDestination) {
        list.Good({0});
      }
      return list.Bad("MPI_ANY_SOURCE", MPI_ANY_SOURCE)
          .Bad("MPI_ROOT", MPI_ROOT)
          .Bad({1, -9, INT_MAX, INT_MIN})
          .Take();
    }
    case Kind::kSource:
    case Kind::kNearSource: {
      ValueList list(4, {MPI_ERR_RANK});
      list.Good("MPI_PROC_NULL", MPI_PROC_NULL);
      if (kind == Kind::kSource) {
        list.Good({0}).Good("MPI_ANY_SOURCE", MPI_ANY_SOURCE);
      }
      return list.Bad("MPI_ROOT", MPI_ROOT).Bad({1, -9, INT_MAX, INT_MIN}).Take();
    }
    case Kind::kSendTag:
      return ValueList(4, {MPI_ERR_TAG})
          .Good({0})
          .Good("MPI_TAG_UB", kTagMax)
          .Bad("MPI_ANY_TAG", MPI_ANY_TAG)
          .Bad({-5, kTagMax + 1, INT_MAX, INT_MIN})
          .Take();
    case Kind::kReceiveTag:
      return ValueList(4, {MPI_ERR_TAG})
          .Good({0})
          .Good("MPI_ANY_TAG", MPI_ANY_TAG)
          .Bad({-5, kTagMax + 1, INT_MIN})
          .Take();
    case Kind::kRoot:
      return ValueList(4, {MPI_ERR_ROOT})
          .Good({0})
          .Bad({1})
          .Bad("MPI_PROC_NULL", MPI_PROC_NULL)
          .Bad("MPI_ROOT", MPI_ROOT)
          .Bad({INT_MAX, INT_MIN})
          .Take();
    case Kind::kMessage:
      return ValueList(8, {MPI_ERR_ARG, MPI_ERR_REQUEST})
          .GoodAt("MPI_MESSAGE_NO_PROC", {Word(MPI_MESSAGE_NO_PROC)})
          .BadNull()
          .BadAt("MPI_MESSAGE_NULL", {Word(MPI_MESSAGE_NULL)})
          .BadAt("MPI_COMM_WORLD", {Word(MPI_COMM_WORLD)})
          .BadAt("all bits", {~uint64_t{0}})
          .Take();
    default:
      return {};
  }
}

Choices CountsAndSizes(Kind kind, bool wide) {
  switch (kind) {
    case Kind::kCount: {
      ValueList list(4, {MPI_ERR_COUNT, MPI_ERR_ARG});
      list.Good({4}).Odd({0, 1, 3}).Bad({-1, INT_MIN});
      return wide ? list.Bad({INT64_MAX / 2 + 1, INT64_MIN}).Take() : list.Take();
    }
    case Kind::kSmallCount:
      return ValueList(4, {MPI_ERR_ARG, MPI_ERR_COUNT, MPI_ERR_DIMS, MPI_ERR_TOPOLOGY})
          .Good({1})
          .Odd({0, 2, 3})
          .Bad({-1, INT_MIN})
          .Take();
    case Kind::kContentsCount:
      return ValueList(4, {MPI_ERR_ARG, MPI_ERR_COUNT}).Good({16}).Odd({1, 0}).Bad({-1}).Take();
    case Kind::kTypeCount: {
      ValueList list(4, {MPI_ERR_ARG, MPI_ERR_COUNT});
      list.Good({2}).Odd({0, INT_MAX}).Bad({-1, INT_MIN});
      return wide ? list.Odd({INT64_MAX}).Bad({INT64_MIN}).Take() : list.Take();
    }
    case Kind::kRoom:
      return ValueList(4, {MPI_ERR_ARG, MPI_ERR_TRUNCATE, MPI_ERR_COUNT})
          .Good({64})
          .Bad({3, -1, INT_MIN})
          .Take();
    case Kind::kAttachedSize:
      return ValueList(4, {MPI_ERR_ARG, MPI_ERR_BUFFER})
          .Good({4096})
          .Odd({0, 5})
          .Bad({-1, INT_MIN})
          .Take();
    case Kind::kAllocatedSize:
      return ValueList(4, {MPI_ERR_ARG, MPI_ERR_NO_MEM})
          .Good({64})
          .Odd({0})
          .Bad({-1, INT64_MAX, INT64_MIN})
          .Take();
    case Kind::kWindowSize:
      return ValueList(8, {MPI_ERR_SIZE}).Good({64}).Odd({0}).Bad({-1, INT64_MIN}).Take();
    case Kind::kUnit: {
      ValueList list(wide ? 8 : 4, {MPI_ERR_DISP});
      return list.Good({1}).Odd({INT_MAX}).Bad({0, -1, INT_MIN}).Take();
    }
    case Kind::kTargetDisp:
      return ValueList(8, {MPI_ERR_DISP, MPI_ERR_RMA_RANGE})
          .Good({0})
          .Odd({1})
          .Bad({-1, INT64_MIN, INT64_MAX, 4096})
          .Take();
    case Kind::kValueLength:
      return ValueList(4, {MPI_ERR_ARG, MPI_ERR_INFO_VALUE}).Good({10}).Odd({0}).Bad({-1}).Take();
    case Kind::kKeyIndex:
      return ValueList(4, {MPI_ERR_ARG, MPI_ERR_INFO_NOKEY}).Good({0}).Bad({1, -1, INT_MAX}).Take();
    case Kind::kCounterClass:
      return ValueList(4, {MPI_T_ERR_INVALID_NAME})
          .Good({MPI_T_PVAR_CLASS_COUNTER})
          .Odd({0, 99})
          .Take();
    case Kind::kToolIndex:
      return ValueList(4, {MPI_T_ERR_INVALID_INDEX}).Good({0}).Bad({-1, 100000, INT_MIN}).Take();
    case Kind::kProcessSetNumber:
      return ValueList(4, {MPI_ERR_ARG}).Good({0, 1}).Bad({-1, 99, INT_MIN}).Take();
    case Kind::kArgumentCount:
      return ValueList(4, {MPI_ERR_ARG}).Good({1}).Odd({0}).Bad({-1}).Take();
    default:
      return {};
  }
}

Choices Enumerations(Kind kind, World& world) {
  switch (kind) {
    case Kind::kRank:
      return ValueList(4, {MPI_ERR_RANK, MPI_ERR_ARG}).Good({0}).Bad({1, -1, INT_MAX}).Take();
    case Kind::kTarget:
      return ValueList(4, {MPI_ERR_RANK})
          .Good({0})
          .Odd({MPI_PROC_NULL})
          .Bad({1, -1, INT_MAX, INT_MIN})
          .Take();
    case Kind::kLockType:
      return ValueList(4, {MPI_ERR_LOCKTYPE})
          .Good({MPI_LOCK_SHARED, MPI_LOCK_EXCLUSIVE})
          .Bad({0, -1, INT_MAX})
          .Take();
    case Kind::kAssertion:
      return ValueList(4, {MPI_ERR_ASSERT}).Good({0}).Bad({1, -1, INT_MIN + 1}).Take();
    case Kind::kColor:
      return ValueList(4, {MPI_ERR_ARG}).Good({0, MPI_UNDEFINED}).Bad({-1, INT_MIN}).Take();
    case Kind::kSplitType:
      return ValueList(4, {MPI_ERR_ARG})
          .Good({MPI_COMM_TYPE_SHARED, MPI_UNDEFINED})
          .Odd({MPI_COMM_TYPE_HW_GUIDED, MPI_COMM_TYPE_HW_UNGUIDED, MPI_COMM_TYPE_RESOURCE_GUIDED})
          .Bad({-77, INT_MAX})
          .Take();
    case Kind::kErrorCode:
      return ValueList(4, {MPI_ERR_ARG})
          .Good({world.error_class})
          .Odd({world.error_code, MPI_ERR_RANK, MPI_SUCCESS})
          .Bad({-1, INT_MAX})
          .Take();
    case Kind::kAddedClass:
      return ValueList(4, {MPI_ERR_ARG}).Odd({world.error_class}).Bad({MPI_ERR_RANK, -1}).Take();
    case Kind::kAddedCode:
      return ValueList(4, {MPI_ERR_ARG}).Good({world.error_code}).Bad({MPI_ERR_RANK, -1}).Take();
    case Kind::kDimension:
      return ValueList(4, {MPI_ERR_ARG, MPI_ERR_DIMS}).Good({0}).Bad({1, -1, INT_MAX}).Take();
    case Kind::kOne:
      return ValueList(4, {MPI_ERR_ARG, MPI_ERR_DIMS, MPI_ERR_TOPOLOGY, MPI_ERR_RANK})
          .Good({1})
          .Odd({0})
          .Bad({-1, INT_MIN})
          .Take();
    case Kind::kOrder:
      return ValueList(4, {MPI_ERR_ARG}).Good({MPI_ORDER_C, MPI_ORDER_FORTRAN}).Bad({0, -1}).Take();
    case Kind::kTypeClass:
      return ValueList(4, {MPI_ERR_ARG}).Good({MPI_TYPECLASS_REAL}).Bad({0, 55}).Take();
    case Kind::kMatchSize:
      return ValueList(4, {MPI_ERR_ARG}).Good({4}).Bad({3, -1, INT_MAX}).Take();
    case Kind::kPrecision:
    case Kind::kRange:
      return ValueList(4, {MPI_ERR_ARG}).Good({4}).Odd({MPI_UNDEFINED, -1}).Bad({INT_MAX}).Take();
    case Kind::kLogicalSize:
      return ValueList(4, {MPI_ERR_ARG}).Good({4}).Odd({1}).Bad({0, 3, -1}).Take();
    case Kind::kAnyNumber:
    case Kind::kNumberToConvert:
      return ValueList(4, {}).Good({8}).Odd({0, -1, INT_MAX, INT_MIN}).Take();
    default:
      return {};
  }
}

Choices Keyvals(Kind kind, World& world) {
  ValueList list(4, {MPI_ERR_KEYVAL, MPI_ERR_ARG});
  switch (kind) {
    case Kind::kCommKeyval:
      list.Good("its own", world.comm_keyval).Good("MPI_TAG_UB", MPI_TAG_UB);
      break;
    case Kind::kSettableCommKeyval:
      list.Good("its own", world.comm_keyval).Bad("MPI_TAG_UB", MPI_TAG_UB);
      break;
    case Kind::kTypeKeyval:
      list.Good("its own", world.type_keyval).Bad("a communicator's", world.comm_keyval);
      break;
    case Kind::kWindowKeyval:
      list.Good("its own", world.window_keyval).Bad("a communicator's", world.comm_keyval);
      break;
    case Kind::kCommKeyvalToFree:
    case Kind::kTypeKeyvalToFree:
    case Kind::kWindowKeyvalToFree:
      list.GoodAt("its own", {Word(kind == Kind::kCommKeyvalToFree   ? world.comm_keyval
                                   : kind == Kind::kTypeKeyvalToFree ? world.type_keyval
                                                                     : world.window_keyval)});
      return list.BadNull()
          .BadAt("MPI_KEYVAL_INVALID", {Word(MPI_KEYVAL_INVALID)})
          .BadAt("MPI_TAG_UB", {Word(MPI_TAG_UB)})
          .BadAt("a freed one", {Word(world.freed_keyval)})
          .BadAt("-1", {Word(-1)})
          .Take();
    default:
      return {};
  }
  return list.Bad("MPI_KEYVAL_INVALID", MPI_KEYVAL_INVALID)
      .Bad("a freed one", world.freed_keyval)
      .Bad({-1, INT_MAX})
      .Take();
}

// ---- Arrays of numbers --------------------------------------------------------------------------

Choices CountArrays(Kind kind, size_t bytes) {
  ValueList list(bytes, {MPI_ERR_ARG, MPI_ERR_COUNT});
  switch (kind) {
    case Kind::kCounts:
      list.GoodAt("4 each", Repeat(4)).BadNull().BadAt("negative ones", Repeat(-1));
      list.OddAt("0 each", Repeat(0)).OddAt("3 each", Repeat(3));
      return bytes == 8 ? list.BadAt("huge ones", Repeat(INT64_MAX / 2 + 1)).Take() : list.Take();
    case Kind::kDisplacements:
      list.GoodAt("0, 16, 32, ...", {0, 16, 32, 48, 64, 80, 96, 112}).BadNull();
      return list.OddAt("0 each", Repeat(0)).Take();
    case Kind::kPosition:
      list.GoodAt("0", {0}).BadNull().BadAt("-1", {Word(-1)}).BadAt("5000", {5000});
      return list.OddAt("1", {1}).Take();
    case Kind::kBlockLengths:
      list.GoodAt("2 each", Repeat(2)).BadNull().BadAt("negative ones", Repeat(-1));
      return list.OddAt("0 each", Repeat(0)).OddAt("huge ones", Repeat(INT_MAX)).Take();
    case Kind::kTypeDisplacements:
      list.GoodAt("0, 16, 32, ...", {0, 16, 32, 48, 64, 80, 96, 112}).BadNull();
      list.OddAt("negative ones", Repeat(-64)).OddAt("0 each", Repeat(0));
      return list.OddAt("huge ones", Repeat(bytes == 8 ? INT64_MAX : INT_MAX)).Take();
    default:
      return {};
  }
}

Choices ShapeArrays(Kind kind, size_t bytes) {
  ValueList list(bytes, {MPI_ERR_ARG, MPI_ERR_DIMS, MPI_ERR_COUNT});
  switch (kind) {
    case Kind::kSizes:
      list.GoodAt("8 each", Repeat(8)).BadNull().BadAt("0 each", Repeat(0));
      return list.BadAt("negative ones", Repeat(-1)).Take();
    case Kind::kSubsizes:
      list.GoodAt("2 each", Repeat(2)).BadNull().BadAt("0 each", Repeat(0));
      return list.BadAt("9 of 8", Repeat(9)).BadAt("negative ones", Repeat(-1)).Take();
    case Kind::kStarts:
      list.GoodAt("3 each", Repeat(3)).BadNull().BadAt("7 each", Repeat(7));
      return list.BadAt("negative ones", Repeat(-1)).Take();
    case Kind::kDistributions:
      list.GoodAt("MPI_DISTRIBUTE_BLOCK", Repeat(MPI_DISTRIBUTE_BLOCK)).BadNull();
      list.GoodAt("MPI_DISTRIBUTE_CYCLIC", Repeat(MPI_DISTRIBUTE_CYCLIC));
      return list.BadAt("none that there is", Repeat(3)).Take();
    case Kind::kDistributionArguments:
      list.GoodAt("MPI_DISTRIBUTE_DFLT_DARG", Repeat(MPI_DISTRIBUTE_DFLT_DARG)).BadNull();
      return list.BadAt("0 each", Repeat(0)).BadAt("negative ones", Repeat(-4)).Take();
    case Kind::kGrid:
      list.GoodAt("1 each", Repeat(1)).BadNull().BadAt("0 each", Repeat(0));
      return list.BadAt("2 each", Repeat(2)).Take();
    default:
      return {};
  }
}

Choices TopologyArrays(Kind kind) {
  ValueList list(4, {MPI_ERR_ARG, MPI_ERR_DIMS, MPI_ERR_TOPOLOGY, MPI_ERR_RANK, MPI_ERR_COUNT});
  switch (kind) {
    case Kind::kDims:
      list.GoodAt("1 each", Repeat(1)).BadNull().BadAt("2 each", Repeat(2));
      return list.BadAt("negative ones", Repeat(-1)).OddAt("0 each", Repeat(0)).Take();
    case Kind::kDimsToFill:
      list.GoodAt("0 each", Repeat(0)).BadNull().BadAt("negative ones", Repeat(-1));
      return list.BadAt("3 each", Repeat(3)).Take();
    case Kind::kFlags:
      return list.GoodAt("1 each", Repeat(1)).GoodAt("0 each", Repeat(0)).BadNull().Take();
    case Kind::kCoordinates:
      list.GoodAt("0 each", Repeat(0)).GoodAt("negative ones", Repeat(-5)).BadNull();
      return list.Take();
    case Kind::kRanks:
      list.GoodAt("0 and more", {0, 1, 2, 3, 4, 5}).BadNull();
      return list.BadAt("1", Repeat(1)).BadAt("negative ones", Repeat(-9)).Take();
    case Kind::kRanges:
      list.GoodAt("0 to 0 by 1", {0, 0, 1, 0, 0, 1, 0, 0, 1}).BadNull();
      list.BadAt("0 to 5", {0, 5, 1, 0, 5, 1, 0, 5, 1});
      list.BadAt("0 to 5 by INT_MIN", {0, 5, Word(INT_MIN), 0, 5, 1, 0, 5, 1});
      list.OddAt("0 to 0 by INT_MAX", {0, 0, INT_MAX, 0, 0, INT_MAX, 0, 0, INT_MAX});
      return list.BadAt("by 0", {0, 0, 0, 0, 0, 0, 0, 0, 0}).Take();
    case Kind::kGraphIndex:
      list.GoodAt("1 and more", Repeat(1)).BadNull().BadAt("negative ones", Repeat(-1));
      return list.OddAt("falling ones", {2, 1, 0, 0, 0}).Take();
    case Kind::kNeighbours:
      list.GoodAt("0 each", Repeat(0)).BadNull().BadAt("1 each", Repeat(1));
      return list.BadAt("negative ones", Repeat(-9)).Take();
    case Kind::kDegrees:
      return list.GoodAt("1 each", Repeat(1)).BadNull().BadAt("negative ones", Repeat(-1)).Take();
    case Kind::kWeights:
      list.Good("MPI_UNWEIGHTED", MPI_UNWEIGHTED).OddAt("3 each", Repeat(3)).BadNull();
      return list.Odd("MPI_WEIGHTS_EMPTY", MPI_WEIGHTS_EMPTY).BadAt("negative", Repeat(-1)).Take();
    default:
      return {};
  }
}

// ---- Partitions, queues -------------------------------------------------------------------------

constexpr int kFirst[] = {0};
constexpr int kAbsent[] = {5};

// A step that exchanges piece 0 with this rank itself, but for what is wrong.
std::vector<uint64_t> StepOf(int degree, const int* ranks, const int* pieces, MPI_Op op) {
  return {Word(degree), Word(ranks), Word(pieces), Word(op),
          Word(degree), Word(ranks), Word(pieces)};
}

Choices Partitions(Kind kind, World& world) {
  switch (kind) {
    case Kind::kPartitionCount:
    case Kind::kPartitionCountOfAll:
      return ValueList(4, {MPI_ERR_ARG, MPI_ERR_COUNT, MPI_ERR_NO_MEM})
          .Good({4})
          .Odd({1, 3, kind == Kind::kPartitionCount ? INT_MAX : 1 << 20})
          .Bad({0, -1, INT_MIN})
          .Take();
    case Kind::kPartition:
      return ValueList(4, {MPI_ERR_ARG})
          .Good({0})
          .Odd({1, 3})
          .Bad({World::kPartitions, -1, INT_MAX, INT_MIN})
          .Take();
    case Kind::kPartitionList:
      return ValueList(4, {MPI_ERR_ARG})
          .GoodAt("0, 1, 2", {0, 1, 2})
          .OddAt("0 each", Repeat(0))
          .BadNull()
          .BadAt("none that there is", Repeat(World::kPartitions))
          .BadAt("negative ones", Repeat(-1))
          .Take();
    case Kind::kPieceCount:
      return ValueList(4, {MPI_ERR_ARG}).Good({1}).Odd({2, INT_MAX}).Bad({0, -1, INT_MIN}).Take();
    case Kind::kSteps:
      return ValueList(8, {MPI_ERR_ARG, MPI_ERR_RANK, MPI_ERR_OP})
          .GoodAt("with itself", StepOf(1, kFirst, kFirst, MPI_OP_NULL))
          .OddAt("adding", StepOf(1, kFirst, kFirst, MPI_SUM))
          .OddAt("nothing", StepOf(0, nullptr, nullptr, MPI_OP_NULL))
          .BadNull()
          .BadAt("no such rank", StepOf(1, kAbsent, kFirst, MPI_OP_NULL))
          .BadAt("null ranks", StepOf(1, nullptr, kFirst, MPI_OP_NULL))
          .BadAt("null pieces", StepOf(1, kFirst, nullptr, MPI_OP_NULL))
          .BadAt("negative degrees", StepOf(-1, kFirst, kFirst, MPI_OP_NULL))
          .BadAt("a freed op", StepOf(1, kFirst, kFirst, world.freed_op))
          .OddAt("piece 5", StepOf(1, kFirst, kAbsent, MPI_OP_NULL))
          .Take();
    case Kind::kDevice:
      return ValueList(4, {MPI_ERR_ARG, MPI_ERR_UNSUPPORTED_OPERATION})
          .Good({0})
          .Bad({-1, INT_MAX, INT_MIN})
          .Take();
    default:
      return {};
  }
}

Choices Queues(Kind kind, World& world) {
  ValueList list(8, {MPI_ERR_ARG});
  const uint64_t wild = Word(world.send_buffer());
  switch (kind) {
    case Kind::kQueue:
      list.Good("a queue", world.queue()).Bad("MPIX_QUEUE_NULL", MPIX_QUEUE_NULL);
      list.Bad("a freed queue", world.freed_queue()).Bad("the address of a buffer", wild);
      return list.Bad("all bits", ~uint64_t{0}).Take();
    case Kind::kQueueToFree:
      list.GoodAt("a queue", {world.queue()}).BadNull();
      list.BadAt("MPIX_QUEUE_NULL", {MPIX_QUEUE_NULL})
          .BadAt("a freed queue", {world.freed_queue()});
      return list.BadAt("the address of a buffer", {wild}).BadAt("all bits", {~uint64_t{0}}).Take();
    case Kind::kQueueType:
      return ValueList(4, {MPI_ERR_ARG, MPI_ERR_UNSUPPORTED_OPERATION})
          .Good({MPIX_QUEUE_FERRY})
          .Odd({MPIX_QUEUE_CUDA, MPIX_QUEUE_HIP, MPIX_QUEUE_LEVEL_ZERO})
          .Bad({77, -1})
          .Take();
    case Kind::kStreamAddress:
      list.GoodAt("of a stream", {Word(world.stream())}).BadNull().BadAt("of null", {0});
      return list.BadAt("of all bits", {~uint64_t{0}}).Take();
    default:
      return {};
  }
}

// ---- Texts and functions ------------------------------------------------------------------------

Choices Texts(Kind kind, World&) {
  static const std::string endless(5000, 'x');
  switch (kind) {
    case Kind::kKey:
      return ValueList(8, {MPI_ERR_INFO_KEY, MPI_ERR_ARG})
          .Good("\"key\"", "key")
          .BadNull()
          .Bad("\"\"", "")
          .Bad("5,000 bytes", endless.c_str())
          .Take();
    case Kind::kName:
      return ValueList(8, {MPI_ERR_ARG, MPI_ERR_INFO_VALUE, MPI_ERR_NAME})
          .Good("\"name\"", "name")
          .Odd("\"\"", "")
          .Odd("5,000 bytes", endless.c_str())
          .BadNull()
          .Take();
    case Kind::kToolName:  // of one of the three kinds of things
      return ValueList(8, {MPI_T_ERR_INVALID_NAME})
          .Odd("\"heap_bytes\"", "heap_bytes")
          .Odd("\"messages_sent\"", "messages_sent")
          .Odd("\"Counters\"", "Counters")
          .Odd("5,000 bytes", endless.c_str())
          .BadNull()
          .Take();
    case Kind::kProcessSet:
      return ValueList(8, {MPI_ERR_ARG})
          .Good("\"mpi://SELF\"", "mpi://SELF")
          .Odd("\"nobody\"", "nobody")
          .Odd("5,000 bytes", endless.c_str())
          .BadNull()
          .Take();
    case Kind::kRepresentation:
      return ValueList(8, {MPI_ERR_ARG, MPI_ERR_UNSUPPORTED_DATAREP})
          .Good("\"external32\"", "external32")
          .BadNull()
          .Bad("\"native\"", "native")
          .Bad("5,000 bytes", endless.c_str())
          .Take();
    case Kind::kBufferLength:
      return ValueList(4, {MPI_ERR_ARG})
          .GoodAt("10", {10})
          .OddAt("0", {0})
          .BadNull()
          .BadAt("-1", {Word(-1)})
          .Take();
    case Kind::kArguments:
      return ValueList(8, {MPI_ERR_ARG})
          .GoodAt("one", {Word(endless.c_str()), 0})
          .OddNull()
          .OddAt("null ones", {0, 0})
          .Take();
    case Kind::kFunction:
      return ValueList(8, {MPI_ERR_ARG, MPI_ERR_OP}).Good("a function", &User).BadNull().Take();
    case Kind::kAttributeFunction:
      return ValueList(8, {}).Good("none", uint64_t{0}).Take();
    default:
      return {};
  }
}

}  // namespace

Choices ChoicesOf(const CallSignature& signature, size_t parameter, World& world) {
  const Parameter& declared = signature.parameters[parameter];
  const Kind kind = KindOf(signature.name, declared);
  const bool wide = IsWide(declared);
  const size_t bytes = wide ? 8 : 4;
  for (Choices choices : {HandleChoices(kind, world), Memory(kind, parameter, world),
                          Messages(kind, world), CountsAndSizes(kind, wide),
                          Enumerations(kind, world), Keyvals(kind, world), CountArrays(kind, bytes),
                          ShapeArrays(kind, bytes), TopologyArrays(kind), Partitions(kind, world),
                          Queues(kind, world), Texts(kind, world), FileChoices(kind, world)}) {
    if (!choices.values.empty()) {
      return choices;
    }
  }
  std::fprintf(stderr, "values.cc has no values for \"%s\" of %s\n", declared.name.c_str(),
               signature.name.c_str());
  std::abort();
}

uint64_t Place(const Value& value, size_t parameter, World& world) {
  if (value.elements.empty()) {
    return value.word;
  }
  char* const slot = static_cast<char*>(world.Slot(parameter));
  for (size_t i = 0; i < value.elements.size(); ++i) {
    std::memcpy(slot + i * value.element_bytes, &value.elements[i], value.element_bytes);
  }
  return Word(slot);
}

}  // namespace ferry::mpi

#include "mpi/mpi_t/event_types.h"

#include <cstring>

#include "mpi/comm/context_ids.h"
#include "shm/call_record.h"

namespace ferry::mpi {
namespace {

constexpr EventElement kMessageElements[] = {{"source", false},       {"tag", false},
                                             {"communicator", false}, {"traffic", false},
                                             {"expected", false},     {"bytes", true}};
constexpr EventElement kCollectiveElements[] = {{"call", false},  {"communicator", false},
                                                {"root", false},  {"nonblocking", false},
                                                {"number", true}, {"bytes", true}};
constexpr EventElement kWaitElements[] = {
    {"call", false}, {"communicator", false}, {"peer", false}, {"tag", false}, {"bytes", true}};

// MPI_COMM_WORLD has the number 1, MPI_COMM_SELF 2.
#define FERRY_MESSAGE_HELP                                                                    \
  " source: the rank in the job; communicator: its number in the job (MPI_COMM_WORLD 1); "    \
  "traffic: 0 of the program, 1 of a collective, else of Ferry's own work; expected: 1 if a " \
  "receive waited for it"
#define FERRY_CALL_HELP                                                                         \
  " call: its number in the enumeration of the variable current_call; communicator: its number" \
  " in the job, -1 if it has none;"

constexpr std::array<EventType, kEventKinds> kTypes = {{
    {"message_arrived", "A message has come to this rank." FERRY_MESSAGE_HELP, kMessageElements},
    {"message_matched", "A message was given to its receive." FERRY_MESSAGE_HELP, kMessageElements},
    {"collective_entered",
     "A collective operation begins in this rank." FERRY_CALL_HELP
     " root: in the job; number: among those of the communicator",
     kCollectiveElements},
    {"collective_left",
     "A collective operation has ended in this rank; a nonblocking one, when its request is "
     "completed." FERRY_CALL_HELP " root: in the job; number: among those of the communicator",
     kCollectiveElements},
    {"wait_begun",
     "A call finds that it has to wait." FERRY_CALL_HELP
     " peer: the rank in the job, MPI_ANY_SOURCE, or MPI_PROC_NULL if it is not one rank",
     kWaitElements},
    {"wait_ended", "The wait of a call is over." FERRY_CALL_HELP " peer: as of wait_begun",
     kWaitElements},
}};

#undef FERRY_MESSAGE_HELP
#undef FERRY_CALL_HELP

int64_t RankOf(int32_t rank) {
  return rank == shm::kCallAnyRank ? MPI_ANY_SOURCE : rank < 0 ? MPI_PROC_NULL : rank;
}

Enumeration MakeElements(EventKind kind) {
  const EventType& type = kTypes[static_cast<size_t>(kind)];
  Enumeration made{std::string("elements of ") + type.name, {}};
  for (size_t i = 0; i < type.elements.size(); ++i) {
    made.items.push_back({static_cast<int>(i), type.elements[i].name});
  }
  return made;
}

Enumeration MakeCalls() {
  Enumeration made{"calls", {{0, "none"}}};
  for (uint16_t number = 1; number < shm::kMostCallNames; ++number) {
    if (shm::IsCallName(number)) {
      made.items.push_back({number, shm::CallText(static_cast<shm::CallName>(number))});
    }
  }
  return made;
}

// The enumerations of the types of events, then that of the calls.
const std::array<Enumeration, kEventKinds + 1>& Enumerations() {
  static const auto& all = *new std::array<Enumeration, kEventKinds + 1>([] {
    std::array<Enumeration, kEventKinds + 1> made;
    for (int kind = 0; kind < kEventKinds; ++kind) {
      made[static_cast<size_t>(kind)] = MakeElements(static_cast<EventKind>(kind));
    }
    made.back() = MakeCalls();
    return made;
  }());
  return all;
}

}  // namespace

// ---- Types --------------------------------------------------------------------------------------

// Each element lies at a multiple of eight, so that none needs padding of its own.
size_t EventType::DisplacementOf(size_t element) const { return element * sizeof(MPI_Count); }

std::string EventType::description() const { return help; }

const std::array<EventType, kEventKinds>& EventTypes() { return kTypes; }

// ---- Events -------------------------------------------------------------------------------------

void EventData::ReadElement(size_t element, void* buffer) const {
  if (type().elements[element].is_count) {
    const MPI_Count value = values[element];
    std::memcpy(buffer, &value, sizeof(value));
  } else {
    const int value = static_cast<int>(values[element]);
    std::memcpy(buffer, &value, sizeof(value));
  }
}

void EventData::CopyTo(void* buffer) const {
  for (size_t i = 0; i < type().elements.size(); ++i) {
    ReadElement(i, static_cast<std::byte*>(buffer) + type().DisplacementOf(i));
  }
}

EventData MessageEvent(EventKind kind, const shm::MessageSeen& message, bool is_expected) {
  const uint32_t number = message.context / kContextsPerCommunicator;
  EventData event{.kind = kind};
  event.values = {message.source,
                  message.tag,
                  number,
                  message.context % kContextsPerCommunicator,
                  is_expected ? 1 : 0,
                  static_cast<int64_t>(message.size_bytes)};
  return event;
}

EventData CallEvent(EventKind kind, const shm::CallDescription& call) {
  const auto name = call.name != shm::CallName::kNone ? call.name : call.inner;
  const auto has = [&call](uint16_t flag) { return (call.flags & flag) != 0; };
  const int64_t communicator = has(shm::kCallHasGroup) ? int64_t{call.group} : -1;
  const int64_t bytes = has(shm::kCallHasBytes) ? static_cast<int64_t>(call.bytes) : -1;
  EventData event{.kind = kind};
  if (kind == EventKind::kWaitBegun || kind == EventKind::kWaitEnded) {
    const int64_t tag = has(shm::kCallAnyTag) ? MPI_ANY_TAG : has(shm::kCallHasTag) ? call.tag : -1;
    event.values = {static_cast<int64_t>(name), communicator, RankOf(call.peer), tag, bytes};
  } else {
    event.values = {static_cast<int64_t>(name),
                    communicator,
                    RankOf(call.peer),
                    has(shm::kCallNonblocking) ? 1 : 0,
                    has(shm::kCallHasNumber) ? static_cast<int64_t>(call.number) : -1,
                    bytes};
  }
  return event;
}

// ---- Enumerations -------------------------------------------------------------------------------

const Enumeration& ElementsOf(EventKind kind) { return Enumerations()[static_cast<size_t>(kind)]; }

const Enumeration& CallsOfEvents() { return Enumerations().back(); }

const Enumeration* FindEventEnumeration(MPI_T_enum enumeration) {
  for (const Enumeration& each : Enumerations()) {
    if (each.handle() == enumeration) {
      return &each;
    }
  }
  return nullptr;
}

}  // namespace ferry::mpi

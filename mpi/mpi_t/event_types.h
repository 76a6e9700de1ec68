// The types of events of the tool interface (MPI 5.0, section 15.3.8), and what an event says.
//
// Calling thread: any. Nothing blocks.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shm/call_board.h"
#include "shm/message_watch.h"

namespace ferry::mpi {

// In the order of their indices.
enum class EventKind : int {
  kMessageArrived,
  kMessageMatched,
  kCollectiveEntered,
  kCollectiveLeft,
  kWaitBegun,
  kWaitEnded,
};
inline constexpr int kEventKinds = 6;
inline constexpr size_t kMostElements = 6;

// One number in an event: MPI_COUNT if it may be large, otherwise MPI_INT.
struct EventElement {
  const char* name;
  bool is_count;

  MPI_Datatype datatype() const { return is_count ? MPI_COUNT : MPI_INT; }
  size_t size_bytes() const { return is_count ? sizeof(MPI_Count) : sizeof(int); }
};

struct EventType {
  const char* name;
  const char* help;
  std::span<const EventElement> elements;

  // The place of an element in the copy of an event.
  size_t DisplacementOf(size_t element) const;
  std::string description() const;
};

const std::array<EventType, kEventKinds>& EventTypes();

struct EventData {
  EventKind kind;
  uint64_t time_ns = 0;
  std::array<int64_t, kMostElements> values{};

  const EventType& type() const { return EventTypes()[static_cast<size_t>(kind)]; }
  // Writes one element, or all of them at their places.
  void ReadElement(size_t element, void* buffer) const;
  void CopyTo(void* buffer) const;
};

// `is_expected`: a receive waited for it.
EventData MessageEvent(EventKind kind, const shm::MessageSeen& message, bool is_expected);
// Of a collective or a wait. Ranks that it does not name are MPI_PROC_NULL, any rank
// MPI_ANY_SOURCE; other words that it does not have are -1.
EventData CallEvent(EventKind kind, const shm::CallDescription& call);

// ---- Enumerations -------------------------------------------------------------------------------

// The names of numbers: of the elements of a type of event, or of the functions that the element
// `call` and the variable current_call stand for.
struct Enumeration {
  struct Item {
    int value;
    std::string name;
  };
  std::string name;
  std::vector<Item> items;

  MPI_T_enum handle() const { return reinterpret_cast<MPI_T_enum>(const_cast<Enumeration*>(this)); }
};

const Enumeration& ElementsOf(EventKind kind);
const Enumeration& CallsOfEvents();
// Null: it is none of these.
const Enumeration* FindEventEnumeration(MPI_T_enum enumeration);

}  // namespace ferry::mpi

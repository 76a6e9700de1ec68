// How a user wants ranks to be placed: the words of --map-by, --rank-by and --bind-to, in the
// spellings of Open MPI, MPICH and Intel MPI, too.
//
// Pure functions; any thread. Errors: kInvalidArgument, in sentences that name the word and what to
// say instead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"

namespace ferry::tools {

// Parts of a node, from small to large, and the node.
// kCache: the cores of a third-level cache.
enum class Unit { kThread, kCore, kCache, kNuma, kSocket, kNode };

// Returns the unit's name in rules, and as a noun for sentences.
std::string_view NameOf(Unit unit);
std::string_view NounOf(Unit unit);

// The kind of place that a rank is bound to.
enum class Binding { kNone, kThread, kCore, kCache, kNuma, kSocket, kAuto };

// Returns the binding of that name, as the option bind_to has it.
Binding ParseBinding(std::string_view name);

// How ranks are distributed over nodes, and inside each over its units and cores.
struct Mapping {
  enum class By {
    kSlot,  // each node in turn gets as many as it has slots
    kNode,  // each node in turn gets one
    kCount  // each node in turn gets `count`
  };
  // Which rank runs at which of the places that the rule makes.
  enum class Order {
    kAsMapped,  // in the order in which they are made
    kSlot,      // the ranks of a node, and then those of the next
    kFill,      // the ranks of a unit, and then those of the next
    kUnit       // units of the kind `order_unit` in turn
  };

  By by = By::kSlot;
  uint64_t count = 0;
  bool wraps = true;           // with kCount: ranks that are left start with the first node again
  bool oversubscribes = true;  // there may be more ranks than slots, or cores

  std::optional<Unit> unit = {};  // ranks take these in turn; nothing: cores, one after the other
  uint64_t per_unit = 0;          // each gets so many, and then the next; 0: one in turn
  uint64_t width = 0;             // how many cores, or what it is bound to, a rank has; 0: not said
  bool threads_are_cpus = false;  // it is hardware threads of which ranks have some, not cores

  Order order = Order::kAsMapped;
  Unit order_unit = Unit::kNode;

  bool operator==(const Mapping&) const = default;
};

// Reads "slot", "node", "numa:PE=4", "ppr:2:socket" (which does not wrap) and the like. `count` of
// "ppr:2:socket" is 2: it is to be multiplied by the sockets of a node.
StatusOr<Mapping> ParseMapping(std::string_view text);

// Reads the rule of --rank-by into `mapping`.
Status ParseOrder(std::string_view text, Mapping* mapping);

struct BindTo {
  std::string name;    // as the option bind_to has it
  uint64_t width = 0;  // how many of these; 0: not said
};
// Reads "core", "numa:2" and the like.
StatusOr<BindTo> ParseBindTo(std::string_view text);

}  // namespace ferry::tools

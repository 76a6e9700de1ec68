// The objects and the memory for one fuzzed call: live objects of every kind, handles that were
// freed, and a slot of memory for each argument.
//
// Made anew for each call, so that objects that a call frees or changes are whole again for the
// next one. Every communicator returns errors. Needs the front end linked statically: it looks into
// its tables of handles.
#pragma once

#include <ferry/stream.h>
#include <mpix.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace ferry::mpi {

inline constexpr size_t kMaxParameters = 16;
inline constexpr size_t kSlotBytes = 8192;       // MPI_MAX_LIBRARY_VERSION_STRING
inline constexpr size_t kBufferBytes = 1 << 16;  // more than any good count of any good type takes

// Of messages of this rank to itself, in partitions.
struct PartitionedPairs {
  MPI_Request send = MPI_REQUEST_NULL;  // both active; nothing is ready
  MPI_Request receive = MPI_REQUEST_NULL;
  MPI_Request idle_send = MPI_REQUEST_NULL;  // both matched, and never started
  MPI_Request idle_receive = MPI_REQUEST_NULL;
};

struct WorldQueues {
  ferry_stream stream = nullptr;
  MPIX_Queue open = MPIX_QUEUE_NULL;
  MPIX_Queue freed = MPIX_QUEUE_NULL;
};

// Of this rank alone; errors are returned.
struct WorldWindows {
  MPI_Win idle = MPI_WIN_NULL;     // in no epoch
  MPI_Win dynamic = MPI_WIN_NULL;  // attached_buffer() is attached to it
  MPI_Win locked = MPI_WIN_NULL;
  MPI_Win all = MPI_WIN_NULL;        // locked by MPI_Win_lock_all
  MPI_Win posted = MPI_WIN_NULL;     // to this rank
  MPI_Win started = MPI_WIN_NULL;    // and started
  MPI_Win completed = MPI_WIN_NULL;  // and completed
};

// Of one file, which is there while the world is.
struct WorldFiles {
  static constexpr int kSplits = 6;
  MPI_File open = MPI_FILE_NULL;  // to be read and written
  MPI_File read_only = MPI_FILE_NULL;
  MPI_File write_only = MPI_FILE_NULL;
  MPI_File sequential = MPI_FILE_NULL;
  MPI_File closed = MPI_FILE_NULL;
  std::array<MPI_File, kSplits> begun = {};  // as Kind::kFileToReadAtAllEnd and so on
};

class World {
 public:
  // All worlds that follow open their files with the ranks of `comm`, which all make the same
  // calls; usually each rank is alone.
  static void ShareFiles(MPI_Comm comm);

  World();
  // Frees the remaining objects, and everything else that the call has made, by MPI's own calls.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void* Slot(size_t parameter) { return memory().slots[parameter].data(); }
  char* send_buffer() { return memory().send.data(); }
  char* receive_buffer() { return memory().receive.data(); }
  char* attached_buffer() { return memory().attached.data(); }

  static constexpr int kPartitions = 4;
  // Made when they are first asked for: most calls do without.
  const PartitionedPairs& partitioned();
  MPIX_Prequest prequest();       // of idle_send
  const WorldWindows& windows();  // the same
  MPIX_Queue queue() { return queues().open; }
  MPIX_Queue freed_queue() { return queues().freed; }
  ferry_stream stream() { return queues().stream; }
  const WorldFiles& files();
  // The name of a file with 64 bytes.
  const char* file_name();

  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm cart = MPI_COMM_NULL;        // one periodic dimension
  MPI_Comm graph = MPI_COMM_NULL;       // each rank is its own neighbour
  MPI_Comm dist_graph = MPI_COMM_NULL;  // the same
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Datatype vector = MPI_DATATYPE_NULL;  // committed
  MPI_Datatype structure = MPI_DATATYPE_NULL;
  MPI_Datatype uncommitted = MPI_DATATYPE_NULL;
  MPI_Info info = MPI_INFO_NULL;  // "key" is "value"
  MPI_Op op = MPI_OP_NULL;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Errhandler file_handler = MPI_ERRHANDLER_NULL;
  MPI_Errhandler session_handler = MPI_ERRHANDLER_NULL;
  MPI_Session session = MPI_SESSION_NULL;
  MPI_T_enum tool_enum = MPI_T_ENUM_NULL;
  MPI_T_cvar_handle control = MPI_T_CVAR_HANDLE_NULL;  // of a number
  MPI_T_pvar_session counters = MPI_T_PVAR_SESSION_NULL;
  MPI_T_pvar_handle counter = MPI_T_PVAR_HANDLE_NULL;
  MPI_Request inactive = MPI_REQUEST_NULL;  // persistent
  MPI_Request pending = MPI_REQUEST_NULL;   // a receive without a message
  MPI_Request completed = MPI_REQUEST_NULL;
  MPI_Request generalized = MPI_REQUEST_NULL;
  int comm_keyval = MPI_KEYVAL_INVALID;
  int type_keyval = MPI_KEYVAL_INVALID;
  int window_keyval = MPI_KEYVAL_INVALID;
  int freed_keyval = MPI_KEYVAL_INVALID;
  int error_class = 0;  // added by the program, as is its code
  int error_code = 0;
  void* allocated = nullptr;  // allocated by MPI_Alloc_mem

  // Handles, by kind, of freed objects.
  MPI_Comm freed_comm = MPI_COMM_NULL;
  MPI_Group freed_group = MPI_GROUP_NULL;
  MPI_Datatype freed_type = MPI_DATATYPE_NULL;
  MPI_Info freed_info = MPI_INFO_NULL;
  MPI_Op freed_op = MPI_OP_NULL;
  MPI_Errhandler freed_handler = MPI_ERRHANDLER_NULL;
  MPI_Request freed_request = MPI_REQUEST_NULL;
  MPI_Session ended_session = MPI_SESSION_NULL;
  MPI_T_cvar_handle freed_control = MPI_T_CVAR_HANDLE_NULL;
  MPI_T_pvar_session freed_counters = MPI_T_PVAR_SESSION_NULL;

 private:
  struct Memory {
    std::array<std::array<char, kSlotBytes>, kMaxParameters> slots;
    std::array<char, kBufferBytes> send, receive, attached;
  };
  static Memory& memory();

  const WorldQueues& queues();

  void MakeCommunicators();
  void MakeRequests();
  void MakeTools();
  void MakeFreed();
  // Ends their rounds, whichever the call has started, and the queue.
  void EndPartitioned();
  // Closes all, and removes the file.
  void EndFiles();

  std::optional<PartitionedPairs> partitioned_;
  std::optional<WorldQueues> queues_;
  std::optional<WorldWindows> windows_;
  std::optional<WorldFiles> files_;
  bool has_file_ = false;
  MPIX_Prequest prequest_ = MPIX_PREQUEST_NULL;
};

// All handles, other than predefined ones, that stand for an object.
std::set<uint64_t> LiveHandles();

}  // namespace ferry::mpi

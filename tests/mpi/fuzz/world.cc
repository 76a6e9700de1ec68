#include "tests/mpi/fuzz/world.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "mpi/base/handle_table.h"
#include "mpi/io/file.h"
#include "mpi/p2p/request.h"

namespace ferry::mpi {
namespace {

void Must(int code, const char* what) {
  if (code != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    std::fprintf(stderr, "the fuzzer could not prepare itself: %s: %s\n", what, text);
    std::abort();
  }
}
#define FERRY_MUST(call) Must(call, #call)

// ---- Functions and memory that a program passes ------------------------------------------------

void Add(void* in, void* inout, int* count, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  if (*type == MPI_INT) {
    for (int i = 0; i < *count; ++i) {
      static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
    }
  }
}

void Ignore(MPI_Comm*, int*, ...) {}
void IgnoreFile(MPI_File*, int*, ...) {}
void IgnoreSession(MPI_Session*, int*, ...) {}
int Query(void*, MPI_Status* status) { return MPI_Status_set_elements(status, MPI_INT, 0); }
int Free(void*) { return MPI_SUCCESS; }
int Cancel(void*, int) { return MPI_SUCCESS; }

// Frees an object whose handle stays what it is.
template <typename Handle>
int FreeCopy(int (*free_one)(Handle*), Handle handle) {
  return free_one(&handle);
}

template <typename T, typename Handle>
void CollectLive(const HandleTable<T, Handle>& table, std::set<uint64_t>* live) {
  table.ForEach([live](Handle handle, const T*) {
    if (reinterpret_cast<void*>(handle) != completed_request) {
      live->insert(reinterpret_cast<uint64_t>(handle));
    }
  });
}

// Calls `free_one` with each handle of the table that stands for an object.
template <typename T, typename Handle, typename Free>
void ForEachLive(const HandleTable<T, Handle>& table, Free&& free_one) {
  std::set<uint64_t> live;
  CollectLive(table, &live);
  for (const uint64_t word : live) {
    auto handle = reinterpret_cast<Handle>(word);
    if (table.Find(handle) != nullptr) {
      free_one(&handle);
    }
  }
}

// Ends its epochs, whichever the call has begun or ended, and frees it.
void EndWindow(MPI_Win* win) {
  MPI_Group self = MPI_GROUP_NULL;
  int is_over = 0;
  MPI_Win_set_errhandler(*win, MPI_ERRORS_RETURN);
  MPI_Win_unlock(0, *win);
  MPI_Win_unlock_all(*win);
  MPI_Win_complete(*win);
  if (MPI_Win_test(*win, &is_over) == MPI_SUCCESS && is_over == 0) {
    FERRY_MUST(MPI_Win_get_group(*win, &self));
    FERRY_MUST(MPI_Win_start(self, MPI_MODE_NOCHECK, *win));
    FERRY_MUST(MPI_Win_complete(*win));
    FERRY_MUST(MPI_Win_wait(*win));
    FERRY_MUST(MPI_Group_free(&self));
  }
  FERRY_MUST(MPI_Win_free(win));
}

void ReturnErrors(MPI_Comm comm) { MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN); }

// Takes all messages that the call has sent to this rank.
void Drain(MPI_Comm comm) {
  for (int found = 1; found != 0;) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    found = 0;
    if (MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, &message, &status) == MPI_SUCCESS &&
        found != 0) {
      MPI_Mrecv(nullptr, 0, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    }
  }
}

void EndRequest(MPI_Request* handle) {
  Request* const request = requests.Find(*handle);
  if (request->is_persistent() && !request->is_active()) {
    MPI_Request_free(handle);
    return;
  }
  const bool persistent = request->is_persistent();
  if (!request->IsDone() && MPI_Grequest_complete(*handle) != MPI_SUCCESS) {
    MPI_Cancel(handle);  // a receive: everything else ends by itself now
  }
  MPI_Wait(handle, MPI_STATUS_IGNORE);
  if (persistent) {
    MPI_Request_free(handle);
  }
}

void DetachAll() {
  void* buffer = nullptr;
  int bytes = 0;
  MPI_Buffer_detach(&buffer, &bytes);
  MPI_Comm_detach_buffer(MPI_COMM_WORLD, &buffer, &bytes);
  MPI_Comm_detach_buffer(MPI_COMM_SELF, &buffer, &bytes);
  ForEachLive(comms, [](MPI_Comm* comm) {
    void* own = nullptr;
    int size = 0;
    MPI_Comm_detach_buffer(*comm, &own, &size);
  });
  ForEachLive(sessions, [](MPI_Session* session) {
    void* own = nullptr;
    int size = 0;
    MPI_Session_set_errhandler(*session, MPI_ERRORS_RETURN);
    MPI_Session_detach_buffer(*session, &own, &size);
  });
}

}  // namespace

std::set<uint64_t> LiveHandles() {
  std::set<uint64_t> live;
  CollectLive(comms, &live);
  CollectLive(groups, &live);
  CollectLive(datatypes, &live);
  CollectLive(infos, &live);
  CollectLive(ops, &live);
  CollectLive(error_handlers, &live);
  CollectLive(requests, &live);
  CollectLive(matched_messages, &live);
  CollectLive(sessions, &live);
  CollectLive(wins, &live);
  CollectLive(files, &live);
  return live;
}

World::Memory& World::memory() {
  static auto* const memory = new Memory();
  return *memory;
}

World::World() {
  for (auto& slot : memory().slots) {
    std::memset(slot.data(), 0, 256);
  }
  MakeCommunicators();
  FERRY_MUST(MPI_Comm_group(comm, &group));
  FERRY_MUST(MPI_Type_vector(2, 1, 2, MPI_INT, &vector));
  FERRY_MUST(MPI_Type_commit(&vector));
  FERRY_MUST(MPI_Type_vector(2, 1, 3, MPI_INT, &uncommitted));
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, 8};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  FERRY_MUST(MPI_Type_create_struct(2, lengths, places, types, &structure));
  FERRY_MUST(MPI_Type_commit(&structure));
  FERRY_MUST(MPI_Info_create(&info));
  FERRY_MUST(MPI_Info_set(info, "key", "value"));
  FERRY_MUST(MPI_Op_create(Add, 1, &op));
  FERRY_MUST(MPI_Comm_create_errhandler(Ignore, &handler));
  FERRY_MUST(MPI_File_create_errhandler(IgnoreFile, &file_handler));
  FERRY_MUST(MPI_Session_create_errhandler(IgnoreSession, &session_handler));
  FERRY_MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  FERRY_MUST(
      MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &comm_keyval, nullptr));
  FERRY_MUST(
      MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &type_keyval, nullptr));
  FERRY_MUST(
      MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, &window_keyval, nullptr));
  FERRY_MUST(MPI_Add_error_class(&error_class));
  FERRY_MUST(MPI_Add_error_code(error_class, &error_code));
  FERRY_MUST(MPI_Alloc_mem(64, MPI_INFO_NULL, &allocated));
  FERRY_MUST(MPI_Comm_set_attr(comm, comm_keyval, nullptr));
  FERRY_MUST(MPI_Type_set_attr(MPI_INT, type_keyval, nullptr));
  MakeRequests();
  MakeTools();
  MakeFreed();
}

void World::MakeCommunicators() {
  const int size[] = {1};
  const int periodic[] = {1};
  const int index[] = {1};
  const int self[] = {0};
  FERRY_MUST(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  FERRY_MUST(MPI_Cart_create(MPI_COMM_SELF, 1, size, periodic, 0, &cart));
  FERRY_MUST(MPI_Graph_create(MPI_COMM_SELF, 1, index, self, 0, &graph));
  FERRY_MUST(MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, self, MPI_UNWEIGHTED, 1, self,
                                            MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &dist_graph));
}

void World::MakeRequests() {
  FERRY_MUST(MPI_Send_init(nullptr, 0, MPI_INT, MPI_PROC_NULL, 0, comm, &inactive));
  FERRY_MUST(MPI_Irecv(receive_buffer(), 1, MPI_INT, 0, 99, MPI_COMM_SELF, &pending));
  FERRY_MUST(MPI_Isend(nullptr, 0, MPI_INT, MPI_PROC_NULL, 0, comm, &completed));
  FERRY_MUST(MPI_Grequest_start(Query, Free, Cancel, nullptr, &generalized));
}

void World::MakeTools() {
  int number = 0;
  FERRY_MUST(MPI_T_init_thread(MPI_THREAD_SINGLE, &number));
  FERRY_MUST(MPI_T_cvar_get_index("gpu_backend", &number));
  FERRY_MUST(MPI_T_cvar_get_info(number, nullptr, nullptr, nullptr, nullptr, &tool_enum, nullptr,
                                 nullptr, nullptr, nullptr));
  FERRY_MUST(MPI_T_cvar_get_index("heap_bytes", &number));
  const int heap_bytes = number;
  FERRY_MUST(MPI_T_cvar_handle_alloc(heap_bytes, nullptr, &control, &number));
  FERRY_MUST(MPI_T_pvar_session_create(&counters));
  FERRY_MUST(MPI_T_pvar_handle_alloc(counters, 0, nullptr, &counter, &number));
  FERRY_MUST(MPI_T_cvar_handle_alloc(heap_bytes, nullptr, &freed_control, &number));
  FERRY_MUST(MPI_T_pvar_session_create(&freed_counters));
  FERRY_MUST(FreeCopy(MPI_T_cvar_handle_free, freed_control));
  FERRY_MUST(FreeCopy(MPI_T_pvar_session_free, freed_counters));
}

// Done last, so that nothing else has these handles.
void World::MakeFreed() {
  FERRY_MUST(MPI_Comm_dup(MPI_COMM_SELF, &freed_comm));
  FERRY_MUST(MPI_Comm_group(freed_comm, &freed_group));
  FERRY_MUST(MPI_Type_dup(MPI_INT, &freed_type));
  FERRY_MUST(MPI_Info_create(&freed_info));
  FERRY_MUST(MPI_Op_create(Add, 1, &freed_op));
  FERRY_MUST(MPI_Comm_create_errhandler(Ignore, &freed_handler));
  FERRY_MUST(MPI_Recv_init(nullptr, 0, MPI_INT, MPI_PROC_NULL, 0, comm, &freed_request));
  FERRY_MUST(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &freed_keyval,
                                    nullptr));
  FERRY_MUST(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &ended_session));
  FERRY_MUST(FreeCopy(MPI_Session_finalize, ended_session));
  FERRY_MUST(FreeCopy(MPI_Comm_free_keyval, freed_keyval));
  FERRY_MUST(FreeCopy(MPI_Request_free, freed_request));
  FERRY_MUST(FreeCopy(MPI_Errhandler_free, freed_handler));
  FERRY_MUST(FreeCopy(MPI_Op_free, freed_op));
  FERRY_MUST(FreeCopy(MPI_Info_free, freed_info));
  FERRY_MUST(FreeCopy(MPI_Type_free, freed_type));
  FERRY_MUST(FreeCopy(MPI_Group_free, freed_group));
  FERRY_MUST(FreeCopy(MPI_Comm_free, freed_comm));
}

const PartitionedPairs& World::partitioned() {
  if (partitioned_) {
    return *partitioned_;
  }
  PartitionedPairs& made = partitioned_.emplace();
  const auto make_pair = [&](int tag, MPI_Request* send, MPI_Request* receive) {
    FERRY_MUST(
        MPI_Psend_init(send_buffer(), kPartitions, 1, MPI_INT, 0, tag, comm, MPI_INFO_NULL, send));
    FERRY_MUST(MPI_Precv_init(receive_buffer(), kPartitions, 1, MPI_INT, 0, tag, comm,
                              MPI_INFO_NULL, receive));
  };
  make_pair(1, &made.send, &made.receive);
  make_pair(2, &made.idle_send, &made.idle_receive);
  FERRY_MUST(MPI_Start(&made.receive));
  FERRY_MUST(MPI_Start(&made.send));
  return made;
}

MPIX_Prequest World::prequest() {
  if (prequest_ == MPIX_PREQUEST_NULL) {
    FERRY_MUST(MPIX_Prequest_create(partitioned().idle_send, 0, MPI_INFO_NULL, &prequest_));
  }
  return prequest_;
}

const WorldWindows& World::windows() {
  if (windows_) {
    return *windows_;
  }
  WorldWindows& made = windows_.emplace();
  for (MPI_Win* const win :
       {&made.idle, &made.locked, &made.all, &made.posted, &made.started, &made.completed}) {
    void* base = nullptr;
    FERRY_MUST(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, win));
    std::memset(base, 0, 64);
    FERRY_MUST(MPI_Win_set_errhandler(*win, MPI_ERRORS_RETURN));
    FERRY_MUST(MPI_Win_set_attr(*win, window_keyval, nullptr));
  }
  FERRY_MUST(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &made.dynamic));
  FERRY_MUST(MPI_Win_set_errhandler(made.dynamic, MPI_ERRORS_RETURN));
  FERRY_MUST(MPI_Win_attach(made.dynamic, attached_buffer(), 64));
  FERRY_MUST(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, made.locked));
  FERRY_MUST(MPI_Win_lock_all(0, made.all));
  for (const MPI_Win win : {made.posted, made.started, made.completed}) {
    FERRY_MUST(MPI_Win_post(group, 0, win));
  }
  for (const MPI_Win win : {made.started, made.completed}) {
    FERRY_MUST(MPI_Win_start(group, 0, win));
  }
  FERRY_MUST(MPI_Win_complete(made.completed));
  return made;
}

const WorldQueues& World::queues() {
  if (!queues_) {
    WorldQueues& made = queues_.emplace();
    FERRY_MUST(ferry_stream_create(0, &made.stream) == FERRY_SUCCESS ? MPI_SUCCESS : MPI_ERR_OTHER);
    FERRY_MUST(MPIX_Queue_init(&made.open, MPIX_QUEUE_FERRY, &made.stream));
    FERRY_MUST(MPIX_Queue_init(&made.freed, MPIX_QUEUE_FERRY, &made.stream));
    FERRY_MUST(FreeCopy(MPIX_Queue_free, made.freed));
  }
  return *queues_;
}

namespace {

MPI_Comm file_comm = MPI_COMM_SELF;
int file_owner = 0;  // a process, for the name

}  // namespace

void World::ShareFiles(MPI_Comm comm) {
  file_comm = comm;
  file_owner = getpid();
  FERRY_MUST(MPI_Bcast(&file_owner, 1, MPI_INT, 0, comm));
}

const char* World::file_name() {
  static auto* const name = new std::string();
  if (!has_file_) {
    *name = std::filesystem::temp_directory_path() /
            ("ferry_fuzzed." + std::to_string(file_owner == 0 ? getpid() : file_owner));
    const int fd = open(name->c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    FERRY_MUST(fd >= 0 && ftruncate(fd, 64) == 0 && close(fd) == 0 ? MPI_SUCCESS : MPI_ERR_OTHER);
    has_file_ = true;
  }
  return name->c_str();
}

const WorldFiles& World::files() {
  if (files_) {
    return *files_;
  }
  WorldFiles& made = files_.emplace();
  const auto open_file = [this](int amode, MPI_File* file) {
    FERRY_MUST(MPI_File_open(file_comm, file_name(), amode, MPI_INFO_NULL, file));
    FERRY_MUST(MPI_File_set_errhandler(*file, MPI_ERRORS_RETURN));
  };
  open_file(MPI_MODE_RDWR, &made.open);
  open_file(MPI_MODE_RDONLY, &made.read_only);
  open_file(MPI_MODE_WRONLY, &made.write_only);
  open_file(MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, &made.sequential);
  for (MPI_File& file : made.begun) {
    open_file(MPI_MODE_RDWR, &file);
  }
  char* const to = receive_buffer();
  const char* const from = send_buffer();
  FERRY_MUST(MPI_File_read_at_all_begin(made.begun[0], 0, to, 1, MPI_INT));
  FERRY_MUST(MPI_File_read_all_begin(made.begun[1], to, 1, MPI_INT));
  FERRY_MUST(MPI_File_read_ordered_begin(made.begun[2], to, 1, MPI_INT));
  FERRY_MUST(MPI_File_write_at_all_begin(made.begun[3], 0, from, 1, MPI_INT));
  FERRY_MUST(MPI_File_write_all_begin(made.begun[4], from, 1, MPI_INT));
  FERRY_MUST(MPI_File_write_ordered_begin(made.begun[5], from, 1, MPI_INT));
  open_file(MPI_MODE_RDWR, &made.closed);
  FERRY_MUST(FreeCopy(MPI_File_close, made.closed));
  return made;
}

void World::EndFiles() {
  ForEachLive(ferry::mpi::files, [](MPI_File* file) {
    MPI_File_set_errhandler(*file, MPI_ERRORS_RETURN);
    for (const auto end :
         {MPI_File_read_at_all_end, MPI_File_read_all_end, MPI_File_read_ordered_end}) {
      end(*file, nullptr, MPI_STATUS_IGNORE);
    }
    for (const auto end :
         {MPI_File_write_at_all_end, MPI_File_write_all_end, MPI_File_write_ordered_end}) {
      end(*file, nullptr, MPI_STATUS_IGNORE);
    }
    FERRY_MUST(MPI_File_close(file));
  });
  if (has_file_) {
    unlink(file_name());
  }
}

// Steps that the call has taken already fail here, and do no harm.
void World::EndPartitioned() {
  PartitionedPairs its = partitioned_.value_or(PartitionedPairs());
  MPI_Request* const idle[] = {&its.idle_receive, &its.idle_send};
  if (queues_) {  // which may have started them
    for (MPI_Request* const request : idle) {
      MPIX_Enqueue_start(queues_->open, request);
    }
    MPIX_Enqueue_pready(queues_->open, 0, kPartitions - 1, its.idle_send);
    for (MPI_Request* const request : idle) {
      MPIX_Enqueue_wait(queues_->open, request);
    }
    MPIX_Queue_wait(queues_->open);
    MPIX_Queue_free(&queues_->open);
    ferry_stream_destroy(&queues_->stream);
  }
  for (MPI_Request* const request : idle) {
    MPI_Start(request);
  }
  for (const MPI_Request send : {its.send, its.idle_send}) {
    MPI_Pready_range(0, kPartitions - 1, send);
  }
  for (MPI_Request* const request : {&its.receive, &its.send, &its.idle_receive, &its.idle_send}) {
    MPI_Wait(request, MPI_STATUS_IGNORE);
  }
  if (prequest_ != MPIX_PREQUEST_NULL) {
    MPIX_Prequest_free(&prequest_);
  }
}

World::~World() {
  ReturnErrors(MPI_COMM_WORLD);
  ReturnErrors(MPI_COMM_SELF);
  MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
  ForEachLive(comms, [](MPI_Comm* handle) {
    ReturnErrors(*handle);
    Drain(*handle);
  });
  Drain(MPI_COMM_SELF);
  Drain(MPI_COMM_WORLD);
  ForEachLive(matched_messages, [](MPI_Message* message) {
    MPI_Mrecv(nullptr, 0, MPI_BYTE, message, MPI_STATUS_IGNORE);
  });
  EndPartitioned();
  ForEachLive(wins, EndWindow);
  ForEachLive(requests, EndRequest);
  EndFiles();
  DetachAll();
  for (const MPI_Comm predefined : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
    MPI_Comm_delete_attr(predefined, comm_keyval);
  }
  ForEachLive(datatypes, [](MPI_Datatype* handle) { MPI_Type_free(handle); });
  for (const MPI_Datatype predefined : {MPI_INT, MPI_DOUBLE, MPI_BYTE}) {
    MPI_Type_delete_attr(predefined, type_keyval);
  }
  MPI_T_finalize();
  ForEachLive(comms, [](MPI_Comm* handle) { MPI_Comm_free(handle); });
  ForEachLive(sessions, [](MPI_Session* handle) { MPI_Session_finalize(handle); });
  ForEachLive(groups, [](MPI_Group* handle) { MPI_Group_free(handle); });
  ForEachLive(infos, [](MPI_Info* handle) { MPI_Info_free(handle); });
  ForEachLive(ops, [](MPI_Op* handle) { MPI_Op_free(handle); });
  // Each as often as calls have given it.
  ForEachLive(error_handlers, [](MPI_Errhandler* handle) {
    while (error_handlers.Find(*handle) != nullptr) {
      FreeCopy(MPI_Errhandler_free, *handle);
    }
  });
  MPI_Comm_free_keyval(&comm_keyval);
  MPI_Type_free_keyval(&type_keyval);
  MPI_Win_free_keyval(&window_keyval);
  MPI_Remove_error_string(error_code);
  MPI_Remove_error_code(error_code);
  MPI_Remove_error_string(error_class);
  MPI_Remove_error_class(error_class);
  MPI_Free_mem(allocated);
}

}  // namespace ferry::mpi

// libferry_queues.so: the message queues of a rank, for debuggers (mqs.h).
//
// A debugger that asks for a communicator's members gets all ranks of the job for each but
// MPI_COMM_SELF: which of them belong to it is not in the session. Ranks of operations are those of
// MPI_COMM_WORLD there, and a line says so.
#include "mpi/queues/mqs.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "common/version.h"
#include "mpi/queues/queue_reader.h"

// The names are the interface's.
struct _mqs_image_info {
  const mqs_image_callbacks* callbacks;
};

struct _mqs_process_info {
  const mqs_process_callbacks* callbacks;
  ferry::shm::DebugSession session;
  std::map<uint32_t, ferry::mpi::QueuesOfCommunicator> queues;
  // The current communicator (the end: there is none), list and message in it.
  std::map<uint32_t, ferry::mpi::QueuesOfCommunicator>::const_iterator communicator;
  const std::vector<ferry::mpi::QueuedMessage>* list;
  size_t next;
};

namespace {

using ferry::mpi::kNumberOfSelf;
using ferry::mpi::kNumberOfWorld;
using ferry::mpi::QueuedMessage;

// This library's errors.
constexpr int kNoStore = mqs_first_user_code;
constexpr int kNoSymbol = kNoStore + 1;
constexpr int kOtherLayout = kNoStore + 2;
constexpr int kUnreadable = kNoStore + 3;
constexpr int kNoCommunicator = kNoStore + 4;
constexpr int kNoClass = kNoStore + 5;

constexpr char kSymbol[] = "ferry_debug_session";

const mqs_basic_callbacks* basic = nullptr;

template <typename T>
T* Make() {
  void* const memory = basic->mqs_malloc_fp(sizeof(T));
  return memory == nullptr ? nullptr : new (memory) T();
}

template <typename T>
void Destroy(T* object) {
  if (object != nullptr) {
    object->~T();
    basic->mqs_free_fp(object);
  }
}

mqs_process_info& InfoOf(mqs_process* process) { return *basic->mqs_get_process_info_fp(process); }

bool Fetch(mqs_process* process, uint64_t address, size_t size_bytes, void* to) {
  constexpr size_t kMost = 1 << 20;  // at a time: the interface counts in int
  const mqs_process_callbacks& callbacks = *InfoOf(process).callbacks;
  for (size_t at = 0; at < size_bytes; at += kMost) {
    const size_t part = size_bytes - at < kMost ? size_bytes - at : kMost;
    if (callbacks.mqs_fetch_data_fp(process, address + at, static_cast<int>(part),
                                    static_cast<char*>(to) + at) != mqs_ok) {
      return false;
    }
  }
  return true;
}

template <size_t kSize>
void PutText(const std::string& text, char (&to)[kSize]) {
  std::snprintf(to, kSize, "%s", text.c_str());
}

std::string NameOf(uint32_t number) {
  return number == kNumberOfWorld  ? "MPI_COMM_WORLD"
         : number == kNumberOfSelf ? "MPI_COMM_SELF"
                                   : "communicator " + std::to_string(number);
}

// The rank in MPI_COMM_WORLD of the rank of a job, as it is shown in a communicator.
long LocalRank(uint32_t number, int32_t rank) {
  return rank < 0 ? -1 : number == kNumberOfSelf ? 0 : rank;
}

void Describe(uint32_t number, const QueuedMessage& message, bool has_come,
              mqs_pending_operation* operation) {
  std::memset(operation, 0, sizeof(*operation));
  operation->status = message.matched ? mqs_st_matched : mqs_st_pending;
  operation->desired_local_rank = LocalRank(number, message.peer);
  operation->desired_global_rank = message.peer < 0 ? -1 : message.peer;
  operation->tag_wild = message.tag < 0 ? 1 : 0;
  operation->desired_tag = message.tag;
  operation->desired_length = static_cast<mqs_tword_t>(message.size_bytes);
  operation->system_buffer = has_come ? 1 : 0;
  operation->buffer = message.buffer;
  const bool has_actual = message.matched || has_come;
  const int32_t peer = has_actual ? message.actual_peer : message.peer;
  operation->actual_local_rank = LocalRank(number, peer);
  operation->actual_global_rank = peer;
  operation->actual_tag = has_actual ? message.actual_tag : message.tag;
  operation->actual_length =
      static_cast<mqs_tword_t>(has_actual ? message.actual_bytes : message.size_bytes);
  PutText(message.note, operation->extra_text[0]);
  if (number != kNumberOfWorld && number != kNumberOfSelf) {
    PutText("ranks are those of MPI_COMM_WORLD", operation->extra_text[1]);
  }
}

}  // namespace

#define FERRY_MQS extern "C" __attribute__((visibility("default")))

FERRY_MQS void mqs_setup_basic_callbacks(const mqs_basic_callbacks* callbacks) {
  basic = callbacks;
}

FERRY_MQS char* mqs_version_string(void) {
  static const std::string& text =
      *new std::string(std::string("Ferry ") + ferry::kFerryVersion + "'s message queues");
  return const_cast<char*>(text.c_str());
}

FERRY_MQS int mqs_version_compatibility(void) { return MQS_INTERFACE_COMPATIBILITY; }

FERRY_MQS int mqs_dll_taddr_width(void) { return static_cast<int>(sizeof(mqs_taddr_t)); }

FERRY_MQS char* mqs_dll_error_string(int error) {
  static const std::pair<int, const char*> kTexts[] = {
      {mqs_ok, "no error"},
      {kNoStore, "the debugger has no memory"},
      {kNoSymbol, "the process has no libferry"},
      {kOtherLayout, "this library and the process's libferry are of different releases"},
      {kUnreadable, "the process's memory cannot be read"},
      {kNoCommunicator, "there is no current communicator"},
      {kNoClass, "no such class of operations"}};
  for (const auto& [code, text] : kTexts) {
    if (code == error) {
      return const_cast<char*>(text);
    }
  }
  return const_cast<char*>("an error of the debugger");
}

// ---- Images -------------------------------------------------------------------------------------

FERRY_MQS int mqs_setup_image(mqs_image* image, const mqs_image_callbacks* callbacks) {
  auto* const info = Make<mqs_image_info>();
  if (info == nullptr) {
    return kNoStore;
  }
  info->callbacks = callbacks;
  basic->mqs_put_image_info_fp(image, info);
  return mqs_ok;
}

// Which library the process has, only the process knows.
FERRY_MQS int mqs_image_has_queues(mqs_image*, char** message) {
  *message = nullptr;
  return mqs_ok;
}

FERRY_MQS void mqs_destroy_image_info(mqs_image_info* info) { Destroy(info); }

// ---- Processes ----------------------------------------------------------------------------------

FERRY_MQS int mqs_setup_process(mqs_process* process, const mqs_process_callbacks* callbacks) {
  auto* const info = Make<mqs_process_info>();
  if (info == nullptr) {
    return kNoStore;
  }
  info->callbacks = callbacks;
  info->communicator = info->queues.end();
  basic->mqs_put_process_info_fp(process, info);
  return mqs_ok;
}

FERRY_MQS int mqs_process_has_queues(mqs_process* process, char** message) {
  *message = nullptr;
  mqs_process_info& info = InfoOf(process);
  mqs_image* const image = info.callbacks->mqs_get_image_fp(process);
  mqs_taddr_t address = 0;
  char symbol[sizeof(kSymbol)];
  std::memcpy(symbol, kSymbol, sizeof(kSymbol));
  if (basic->mqs_get_image_info_fp(image)->callbacks->mqs_find_symbol_fp(image, symbol, &address) !=
      mqs_ok) {
    return kNoSymbol;
  }
  if (!Fetch(process, address, sizeof(info.session), &info.session)) {
    return kUnreadable;
  }
  if (info.session.address == 0) {
    return mqs_no_information;  // before MPI_Init, or after MPI_Finalize
  }
  return info.session.layout_version == ferry::kLayoutVersion ? int{mqs_ok} : kOtherLayout;
}

FERRY_MQS void mqs_destroy_process_info(mqs_process_info* info) { Destroy(info); }

// ---- Communicators ------------------------------------------------------------------------------

FERRY_MQS int mqs_update_communicator_list(mqs_process* process) {
  char* message = nullptr;
  if (const int error = mqs_process_has_queues(process, &message); error != mqs_ok) {
    return error;
  }
  mqs_process_info& info = InfoOf(process);
  info.list = nullptr;
  const bool is_read = ferry::mpi::ReadQueues(
      info.session,
      [process](uint64_t address, size_t size_bytes, void* to) {
        return Fetch(process, address, size_bytes, to);
      },
      &info.queues);
  info.communicator = info.queues.end();
  return is_read ? int{mqs_ok} : kUnreadable;
}

FERRY_MQS int mqs_setup_communicator_iterator(mqs_process* process) {
  mqs_process_info& info = InfoOf(process);
  info.communicator = info.queues.begin();
  info.list = nullptr;
  return info.queues.empty() ? mqs_end_of_list : mqs_ok;
}

FERRY_MQS int mqs_get_communicator(mqs_process* process, mqs_communicator* communicator) {
  const mqs_process_info& info = InfoOf(process);
  if (info.communicator == info.queues.end()) {
    return kNoCommunicator;
  }
  const uint32_t number = info.communicator->first;
  std::memset(communicator, 0, sizeof(*communicator));
  communicator->unique_id = number;
  communicator->local_rank = LocalRank(number, static_cast<int32_t>(info.session.rank));
  communicator->size = number == kNumberOfSelf ? 1 : info.session.job_size;
  PutText(NameOf(number), communicator->name);
  return mqs_ok;
}

FERRY_MQS int mqs_get_comm_group(mqs_process* process, int* group) {
  const mqs_process_info& info = InfoOf(process);
  if (info.communicator == info.queues.end()) {
    return kNoCommunicator;
  }
  if (info.communicator->first == kNumberOfSelf) {
    group[0] = static_cast<int>(info.session.rank);
    return mqs_ok;
  }
  for (uint32_t rank = 0; rank < info.session.job_size; ++rank) {
    group[rank] = static_cast<int>(rank);
  }
  return mqs_ok;
}

FERRY_MQS int mqs_next_communicator(mqs_process* process) {
  mqs_process_info& info = InfoOf(process);
  if (info.communicator != info.queues.end()) {
    ++info.communicator;
  }
  info.list = nullptr;
  return info.communicator == info.queues.end() ? mqs_end_of_list : mqs_ok;
}

// ---- Operations ---------------------------------------------------------------------------------

FERRY_MQS int mqs_setup_operation_iterator(mqs_process* process, int op_class) {
  mqs_process_info& info = InfoOf(process);
  info.list = nullptr;
  info.next = 0;
  if (info.communicator == info.queues.end()) {
    return kNoCommunicator;
  }
  const ferry::mpi::QueuesOfCommunicator& queues = info.communicator->second;
  switch (op_class) {
    case mqs_pending_sends:
      info.list = &queues.sends;
      return mqs_ok;
    case mqs_pending_receives:
      info.list = &queues.receives;
      return mqs_ok;
    case mqs_unexpected_messages:
      info.list = &queues.unexpected;
      return mqs_ok;
    default:
      return kNoClass;
  }
}

FERRY_MQS int mqs_next_operation(mqs_process* process, mqs_pending_operation* operation) {
  mqs_process_info& info = InfoOf(process);
  if (info.list == nullptr || info.next >= info.list->size()) {
    return mqs_end_of_list;
  }
  const bool has_come = info.list == &info.communicator->second.unexpected;
  Describe(info.communicator->first, (*info.list)[info.next++], has_come, operation);
  return mqs_ok;
}

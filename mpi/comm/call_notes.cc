#include "mpi/comm/call_notes.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "mpi/base/connection.h"

namespace ferry::mpi {
namespace {

void WriteName(const void* object, char (&name)[shm::kCallGroupNameBytes]) {
  const std::string text = static_cast<const Comm*>(object)->name();
  std::memcpy(name, text.data(), std::min(text.size(), sizeof(name)));
}

// The end of the file's name: all of it, or what begins with a folder's name, or the last bytes.
void WriteFileName(const void* object, char (&name)[shm::kCallGroupNameBytes]) {
  std::string_view text = static_cast<const char*>(object);
  constexpr std::string_view kCut = "...";
  if (text.size() > sizeof(name)) {
    text = text.substr(text.size() - (sizeof(name) - kCut.size()));
    text = text.substr(std::min(text.find('/'), text.size()) % text.size());
    std::memcpy(name, kCut.data(), kCut.size());
    std::memcpy(name + kCut.size(), text.data(), text.size());
  } else {
    std::memcpy(name, text.data(), text.size());
  }
}

}  // namespace

void DescribeComm(const Comm& comm, shm::CallDescription* description) {
  description->flags |= shm::kCallHasGroup;
  description->group = comm.number();
  description->group_object = &comm;
  description->write_name = &WriteName;
}

void DescribePeer(const Comm& comm, int peer, shm::CallDescription* description) {
  if (comm.IsPeer(peer)) {
    description->peer = comm.WorldRank(peer);
    description->peer_in_group = peer;
  }
}

void DescribeWorldPeer(const Comm* comm, int32_t world_rank, shm::CallDescription* description) {
  if (world_rank == client::kAny) {
    description->peer = shm::kCallAnyRank;
    description->peer_in_group = shm::kCallAnyRank;
    return;
  }
  description->peer = world_rank;
  description->peer_in_group = comm != nullptr ? comm->RankOf(world_rank) : world_rank;
}

void DescribeTag(int32_t tag, shm::CallDescription* description) {
  description->flags |= tag == client::kAny ? shm::kCallAnyTag : shm::kCallHasTag;
  description->tag = tag;
}

void DescribeBytes(uint64_t bytes, shm::CallDescription* description) {
  description->flags |= shm::kCallHasBytes;
  description->bytes = bytes;
}

void DescribeFile(const FileUse& use, shm::CallDescription* description) {
  if (use.name == nullptr) {
    return;
  }
  description->flags |= shm::kCallHasFile;
  description->file = use.name;
  description->group_object = use.name;
  description->write_name = &WriteFileName;
  if (use.offset >= 0) {
    description->flags |= shm::kCallHasObject;
    description->object = static_cast<uint64_t>(use.offset);
  }
  if (use.bytes >= 0) {
    DescribeBytes(static_cast<uint64_t>(use.bytes), description);
  }
}

void CommNote::DescribeIt(const CallNote& note, shm::CallDescription* description) {
  const auto& call = static_cast<const CommNote&>(note);
  description->name = client::CallOf(call.function);
  if (call.comm != nullptr) {
    DescribeComm(*call.comm, description);
    if (call.is_window) {
      description->flags |= shm::kCallHasObject;
      description->object = call.comm->number();
    }
  }
  if (call.peers != nullptr) {
    DescribePeer(*call.peers, call.peer, description);
  }
  if (call.file != nullptr) {
    DescribeFile(*call.file, description);
  }
}

NotedCall::NotedCall(const char* function, const Comm* comm) : note_(function, comm) {
  if (front_end != nullptr) {
    place_ = &front_end->calls->current();
    outer_ = *place_;
    *place_ = &note_;
    front_end->calls->Enter(&note_, outer_);
  }
}

NotedCall::~NotedCall() {
  if (place_ == nullptr || front_end == nullptr) {
    return;
  }
  *place_ = outer_;
  note_.comm = nullptr;  // both may have been freed by the call
  note_.peers = nullptr;
  front_end->calls->Leave(&note_, outer_);
}

void EndNotedCalls() {
  client::CallNote*& current = front_end->calls->current();
  if (current != nullptr) {
    front_end->calls->End(current);
    current = nullptr;
  }
}

OutsideCalls::OutsideCalls() {
  if (front_end != nullptr) {
    left_ = front_end->calls->current();
    EndNotedCalls();
  }
}

// The function may have ended the connection.
OutsideCalls::~OutsideCalls() {
  if (front_end != nullptr) {
    front_end->calls->current() = left_;
  }
}

}  // namespace ferry::mpi

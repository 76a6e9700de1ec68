#include "client/api/call_words.h"

#include <cstring>

#include "shm/call_record.h"

namespace ferry::client {

std::string PhraseOf(const CallNote& note) {
  shm::CallDescription call;
  note.describe(note, &call);
  if (call.name == shm::CallName::kNone) {
    return "";
  }
  const auto has = [&call](shm::CallFlag flag) { return (call.flags & flag) != 0; };
  shm::CallView view;
  view.name = call.name;
  view.inner = call.inner;
  view.has_group = has(shm::kCallHasGroup);
  view.has_tag = has(shm::kCallHasTag);
  view.any_tag = has(shm::kCallAnyTag);
  view.has_bytes = has(shm::kCallHasBytes);
  view.has_number = note.has_number || has(shm::kCallHasNumber);
  view.is_peer_root = has(shm::kCallPeerIsRoot);
  view.is_nonblocking = has(shm::kCallNonblocking);
  view.group = call.group;
  const bool has_file = has(shm::kCallHasFile);
  if ((view.has_group || has_file) && call.write_name != nullptr) {
    char name[shm::kCallGroupNameBytes] = {};
    call.write_name(call.group_object, name);
    (has_file ? view.file : view.group_name).assign(name, strnlen(name, sizeof(name)));
  }
  view.has_object = has(shm::kCallHasObject);
  view.object = call.object;
  view.peer = call.peer;
  view.peer_in_group = call.peer == shm::kCallNoRank ? shm::kCallNoRank : call.peer_in_group;
  view.tag = call.tag;
  view.bytes = call.bytes;
  view.number = note.has_number ? note.number : call.number;
  return shm::CallPhrase(view);
}

}  // namespace ferry::client

// One connection of a meeting of ranks: a socket that does not block, and the packets on it, in
// MeetingSeal's seals.
//
// The caller says a fixed word and its number, the server answers with the same word and its own;
// then come packets, each after its length. The server says nothing to one that does not know the
// word, and only that it refuses to one whose first packet does not open: it has another secret.
//
// Calling thread: one at a time. Nothing blocks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/bootstrap/meeting_seal.h"
#include "common/secret.h"
#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::client {

class MeetingStream {
 public:
  enum class Side { kCaller, kServer };

  // `number`: from DrawNumber, for this connection alone.
  MeetingStream(UniqueFd socket, Side side, const Secret& key, const Secret& number);

  int fd() const { return socket_.get(); }
  // The events to wait for with poll(2).
  short events() const;
  // True once the other side has said its number: it speaks this protocol.
  bool is_greeted() const { return in_.has_value(); }
  // True once a packet of the other side has opened: it knows the secret.
  bool is_proven() const { return is_proven_; }

  // Sends a packet with these words, now or in later turns.
  void Put(std::string_view words);
  bool has_output() const { return !output_.empty() || !waiting_.empty(); }

  // Sends as much as there is room for, and takes nothing in.
  void Flush() { (void)Send().ok(); }
  // Sends and takes in as much as there is, without waiting. kWouldBlock: no packet has come whole.
  // kPermissionDenied: the other side does not know the secret, or refuses this one. kCorrupt: it
  // speaks something else. kSystem: it has closed the connection.
  StatusOr<std::string> Turn();

 private:
  Status Send();
  Status Receive();
  Status Greet();
  StatusOr<std::string> TakePacket();
  void Append(std::string_view packet);

  UniqueFd socket_;
  const Side side_;
  const Secret key_;
  ConnectionNumbers numbers_;
  std::optional<MeetingSeal> in_;
  std::optional<MeetingSeal> out_;
  bool is_proven_ = false;
  bool is_closed_ = false;  // by the other side; packets may still be in input_
  std::string input_;
  std::string output_;
  size_t sent_bytes_ = 0;             // of output_
  std::vector<std::string> waiting_;  // words for which there are no keys yet
};

// Has the kernel ask, or not any more, whether the host at the other end of a TCP connection is
// still there, and close the connection if that has not answered for about ten seconds. The host of
// a process that is slow answers. Does nothing for a local socket.
void WatchHost(int socket, bool is_watched);

// Fields one after the other in the words of a packet.
void AddField(std::string_view field, std::string* words);
// Takes the first field off `words`; nothing if they are not such.
std::optional<std::string_view> TakeField(std::string_view* words);

}  // namespace ferry::client

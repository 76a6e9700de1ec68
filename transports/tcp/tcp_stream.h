// One connection of a TcpTransport: turns bytes of the socket into frames, and frames into bytes.
// The meaning of the frames is its owner's affair.
//
// Reading. One `recv` fills a buffer that all connections of a transport use in turn, so that it
// stays in the cache. Of a long piece of data, the missing bytes are read to their place instead
// (kInPlaceBytes). Where such data comes, less is read into the read buffer, as it would only have
// to be copied.
//
// Writing. The frames that wait are gathered into one `sendmsg`.
//
// Thread: the one that owns the transport. Nothing blocks. Allocates when it is made, and for
// answers that the socket does not take at once.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "common/unique_fd.h"
#include "transports/tcp/tcp_frame.h"
#include "transports/tcp/tcp_operation.h"
#include "transports/tcp/tcp_silence.h"

namespace ferry::transport {

inline constexpr size_t kReadBufferBytes = size_t{64} << 10;
using ReadBuffer = std::unique_ptr<std::byte[]>;

class TcpStream;

// Where the data of a frame goes.
struct FrameData {
  std::byte* to = nullptr;  // null: nowhere
  uint64_t bytes = 0;       // what fits there
  bool taken = false;       // the owner has taken it, with the trailer, out of `behind`
};

class FrameReader {
 public:
  virtual ~FrameReader() = default;
  // A frame has come. `behind` holds the bytes that have come after `head`, and lies behind it.
  virtual FrameData OnFrame(TcpStream& stream, const FrameHeader& frame,
                            std::span<const std::byte> head, std::span<const std::byte> behind) = 0;
  // The frame's data has come, unless OnFrame has taken it. `spoilt`: it is of no use. `unplaced`:
  // the memory where it was to go cannot be written.
  virtual void OnFrameData(TcpStream& stream, bool spoilt, bool unplaced) = 0;
  // A message that is too long is passed over.
  virtual void OnMisfit() = 0;
};

// An answer to a frame of the peer.
struct TcpReply {
  FrameHeader header;
  OutFrame out;
  TcpRegion* region = nullptr;  // of the data
  uint64_t left = 0;            // bytes of data that the next frames carry
};

// The owner's notes on the frame that comes in now.
struct TcpArrival {
  FrameHeader frame;
  TcpOperation* read = nullptr;  // kData
  TcpRegion* region = nullptr;   // kWrite
  uint64_t landing_context = 0;  // kMessageFrom, where the sink has said
  bool landing = false;
  bool is_whole = false;               // kMessageFrom, goes to `whole`
  std::unique_ptr<std::byte[]> whole;  // kMessageFrom, for OnReceive; kept for the next one
  size_t whole_bytes = 0;              // its capacity
};

class TcpStream {
 public:
  enum class State : uint8_t { kConnecting, kGreeting, kUp, kClosed };
  enum class Read : uint8_t {
    kDrained,  // no more has come so far
    kMore,     // there may be more
    kUnread,   // there is more, in the read buffer, which the stream keeps
    kEnded,    // the connection is over
  };
  struct Limits {
    uint64_t head_bytes;
    uint64_t attachment_bytes;
  };

  // `called`: the other side has connected to this one.
  TcpStream(UniqueFd fd, TcpRemote* remote, bool called, const Limits& limits);

  int fd() const { return fd_.get(); }
  TcpRemote* remote() const { return remote_; }
  bool called() const { return called_; }
  State state() const { return state_; }
  void set_state(State state) { state_ = state; }
  bool up() const { return state_ == State::kUp; }
  bool closed() const { return state_ == State::kClosed; }
  // Closes the socket. The object stays until no thread can be in one of its calls.
  void Close();

  // Notes that the connection is over (an errno; 0: the peer has ended it). The owner breaks it in
  // its Poll. `by_peer`: the peer or the network ended it, and all that had come was read; else
  // this side ended it.
  void Break(int error, bool by_peer = false);
  bool broken() const { return broken_; }
  bool broken_by_peer() const { return broken_by_peer_; }
  // Returns true if all that has come was whole frames.
  bool is_between_frames() const {
    return phase_ == Phase::kFrame && held_bytes_ == 0 && unread_.empty();
  }
  int error() const { return error_; }
  // Returns true if the stream keeps a read buffer, with bytes that are not read yet.
  bool keeps_unread() const { return !unread_.empty(); }

  // Reads the Welcome. kDrained: not all of it has come; kMore: it is in `*welcome`.
  Read ReadWelcome(TcpWelcome* welcome);
  // Reads frames, at most `*frames` of them, which it counts down, and not for long.
  Read ReadFrames(FrameReader& reader, ReadBuffer& buffer, uint32_t* frames);
  // Returns how many bytes have ever come.
  uint64_t received_bytes() const { return received_bytes_; }
  // Takes the place away from the data that comes in now: the rest of it is dropped.
  void DropData() { to_ = nullptr; }
  TcpArrival arrival;
  uint64_t up_ns = 0;       // since when it is up, if we have connected
  uint64_t read_round = 0;  // of the owner's, in which it was last read

  // ---- The owner's notes on what is to be written

  std::deque<TcpReply> replies;
  // This operation has begun to be written, and goes first; else the first of `replies` has, if
  // `reply_begun`.
  TcpOperation* begun = nullptr;
  uint64_t frame_ns = 0;  // since when it has something to write, or the last whole frame left
  uint64_t round = 0;     // of the owner's, in which it last wrote
  TcpSilence silence;
  bool is_silent = false;       // it ends for that
  uint64_t gathered_bytes = 0;  // wait since the last write
  int write_error = 0;          // nothing can be written any more; what has come is read first
  bool reply_begun = false;
  bool replies_turn = false;
  bool blocked = false;  // the kernel took less than there was
  bool watched = false;  // epoll tells when it takes more
  bool dirty = false;    // is on the owner's list of streams with something to write
  bool unread = false;   // is on the owner's list of streams that keep a read buffer
  bool paused = false;   // is not read: too many answers wait

 private:
  enum class Phase : uint8_t { kFrame, kData, kTrailer };

  // Takes frames out of `bytes`, and returns what is left of these.
  std::span<const std::byte> Take(FrameReader& reader, std::span<const std::byte> bytes,
                                  uint32_t* frames);
  bool TakeFrame(FrameReader& reader, std::span<const std::byte>* bytes, uint32_t* frames);
  void TakeData(std::span<const std::byte>* bytes);
  bool TakeTrailer(FrameReader& reader, std::span<const std::byte>* bytes);
  bool Hold(std::span<const std::byte>* bytes, size_t want);
  ssize_t Receive(ReadBuffer& buffer, size_t* asked, size_t* in_place);

  UniqueFd fd_;
  int error_ = 0;
  TcpRemote* const remote_;
  const Limits limits_;

  // The beginning of a frame, or of a trailer, the rest of which has not come.
  std::unique_ptr<std::byte[]> held_;
  size_t held_bytes_ = 0;
  std::byte* to_ = nullptr;  // where data goes
  uint64_t fits_ = 0;
  uint64_t missing_ = 0;
  uint64_t received_bytes_ = 0;
  size_t ask_bytes_ = kReadBufferBytes;  // for the read buffer
  ReadBuffer own_buffer_;                // with what is unread
  std::span<const std::byte> unread_;

  const bool called_;
  State state_ = State::kConnecting;
  bool broken_ = false;
  bool broken_by_peer_ = false;
  Phase phase_ = Phase::kFrame;
  bool is_misfit_ = false;
  bool unplaced_ = false;
  bool is_long_ = false;  // data that is read to its place has begun
};

// Adds the pieces of a frame that are not sent yet. Returns how many were added, and adds their
// bytes.
inline constexpr size_t kPiecesOfFrame = 3;
size_t AddPieces(const OutFrame& frame, iovec* pieces, uint64_t* bytes);

}  // namespace ferry::transport

// The processor that costs are counted for; cycles unless said otherwise.
#pragma once

#include <cstdint>

namespace tenon::schedule::cpu {

constexpr double kLanes = 16;             // of a vector of floats
constexpr double kFewThreads = 2;         // that share a kernel: on a small machine,
constexpr double kManyThreads = 16;       // and on a large one
constexpr double kLine = 64;              // bytes
constexpr double kFirstCache = 24 << 10;  // bytes: what is left of 32 KiB beside stack and code
constexpr double kSecondCache = 768 << 10;
constexpr double kFirstMiss = 4, kSecondMiss = 16;  // per line, when many are under way
constexpr double kJump = 2.5;                       // a line that does not follow the last one: nobody fetched it ahead
constexpr double kTurned = 5;                       // a vector of a square that is turned in registers
constexpr double kTurnedLine = 1.5;                 // its lines come from as many rows as there are lanes
constexpr double kGatherLane = 1, kScatterLane = 1.5;
constexpr double kFoldLanes = 14;       // lanes to one number
constexpr double kAccumulatorFold = 2;  // one of 32 accumulators in memory
constexpr double kLoopStart = 4;
constexpr int kDear = 8;                // instructions above which a value is kept rather than computed again
constexpr double kFork = 6000;          // waking threads
constexpr double kSecondKernel = 1500;  // of a split sum
constexpr double kColumns = 64;         // the least that a thread takes of a loop with lanes
constexpr double kFar = 1 << 20;        // elements: no telling where

}  // namespace tenon::schedule::cpu

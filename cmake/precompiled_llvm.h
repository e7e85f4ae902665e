// What the files of the code generator share of LLVM.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "precompiled.h"

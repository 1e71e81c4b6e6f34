if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1

setlocal commentstring=#\ %s comments=:#
setlocal expandtab shiftwidth=2 softtabstop=2
" `gq` formats the whole text by the compiler's formatter. A text with errors stays, and the error is shown.
setlocal formatexpr=TcFormat()
let b:undo_ftplugin = "setlocal commentstring< comments< expandtab< shiftwidth< softtabstop< formatexpr<"

if exists("*TcFormat")
  finish
endif
function TcFormat() abort
  let l:lines = systemlist("tensorc fmt -", getline(1, "$"))
  if v:shell_error
    echohl ErrorMsg | echo join(l:lines, " ") | echohl None
  else
    call setline(1, l:lines)
    if line("$") > len(l:lines)
      execute (len(l:lines) + 1) . ",$delete _"
    endif
  endif
  return 0
endfunction

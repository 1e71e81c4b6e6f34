autocmd BufRead,BufNewFile *.tc setfiletype tc

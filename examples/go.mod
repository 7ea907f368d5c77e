module github.com/sluicego/sluice/examples

go 1.26

require github.com/sluicego/sluice v0.0.0

replace github.com/sluicego/sluice => ../

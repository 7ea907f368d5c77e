module github.com/sluicego/sluice/examples

go 1.26

require (
	github.com/sluicego/sluice v0.0.0
	github.com/stretchr/testify v1.12.1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/sluicego/sluice => ../

"""The web page of a site: reads through `clusterctl.operations`, renders on the server."""
